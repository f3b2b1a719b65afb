"""The client's metrics: its bookies, their weights, and the requests outstanding at them. Runs on the event loop."""

from bookie.client.known_cluster import KnownCluster
from bookie.client.placement.chances import placement_families
from bookie.metrics.family import Family, Kind, Sample, gauge

__all__ = ["client_families"]


def client_families(cluster: KnownCluster) -> list[Family]:
    """Return the metrics as of now.

    The free space of bookies is known only if placement is weighted or somebody subscribed to it.
    """
    bookies = cluster.bookies
    every = sorted(cluster.writable | cluster.read_only)
    pending = tuple(Sample(bookies.pending(one), (("bookie", one),)) for one in every)
    return [
        gauge("bookie_client_writable_bookies", "Writable bookies of the cluster.", len(cluster.writable)),
        gauge("bookie_client_read_only_bookies", "Read-only bookies of the cluster.", len(cluster.read_only)),
        gauge("bookie_client_quarantined_bookies", "Bookies excluded from new ensembles because they fail too often.",
              len(bookies.excluded())),
        gauge("bookie_client_bookies_unknown", "Bookies whose free space is unknown.", len(cluster.info.errors)),
        Family("bookie_client_pending_requests", Kind.GAUGE, "Requests to a bookie without an answer yet.", pending),
        gauge("bookie_client_unbatched_bookies", "Bookies whose entries are read one by one: no batch reads there.",
              bookies.unbatched),
        *bookies.batch_stats.families(),
        bookies.announcements.family(),
        *placement_families(cluster.writable, cluster.info.known, cluster.context.placement.drawn, bookies.config),
    ]  # fmt: skip
