"""What a client measures, as families: its bookies, their weights, and what waits for them. Event loop."""

from bookie.client.known_cluster import KnownCluster
from bookie.client.placement.chances import chances, families
from bookie.metrics.family import Family, Kind, Sample, gauge

__all__ = ["client_families"]


def client_families(cluster: KnownCluster) -> list[Family]:
    """As of now. What is free on bookies is known where placement is weighted, or somebody subscribed to it."""
    bookies = cluster.bookies
    every = sorted(cluster.writable | cluster.read_only)
    pending = tuple(Sample(bookies.pending(one), (("bookie", one),)) for one in every)
    return [
        gauge("bookie_client_writable_bookies", "Writable bookies of the cluster.", len(cluster.writable)),
        gauge("bookie_client_read_only_bookies", "Read-only bookies of the cluster.", len(cluster.read_only)),
        gauge("bookie_client_quarantined_bookies", "Bookies left out of ensembles because they fail too often.",
              len(bookies.excluded())),
        gauge("bookie_client_bookies_unknown", "Bookies that did not tell how much is free.", len(cluster.info.errors)),
        Family("bookie_client_pending_requests", Kind.GAUGE, "Requests that wait for an answer of a bookie.", pending),
        *families(chances(cluster.writable, cluster.info.known, bookies.config)),
    ]  # fmt: skip
