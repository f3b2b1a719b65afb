"""How long a bookie with little free space waits between two copies, so that others go first. Pure; any thread."""

from statistics import median

from bookie.client.config import ClientConfig
from bookie.client.replication.contracts import Cluster

__all__ = ["pause_s"]


def pause_s(bookie: str, cluster: Cluster, config: ClientConfig) -> float:
    """Return the pause in seconds: a share of the longest pause.

    The share is how far the bookie's free space is below the median of all writable bookies. It is 0 unless weights
    and pauses are both enabled, and if the bookie's free space is unknown.
    """
    free = cluster.free_bytes
    mine = free.get(bookie)
    if mine is None or not (config.weight_paced_replication and config.weighted_placement):
        return 0.0
    known = [count for one, count in free.items() if one in cluster.writable]
    middle = median(known) if known else 0
    return config.weight_paced_pause_max_s * (1 - min(1.0, mine / middle)) if middle > 0 else 0.0
