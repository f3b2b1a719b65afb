"""Bookies with little room let the others go first: how long one waits between two copies. Pure; any thread."""

from statistics import median

from bookie.client.config import ClientConfig
from bookie.client.replication.contracts import Cluster

__all__ = ["pause_s"]


def pause_s(bookie: str, cluster: Cluster, config: ClientConfig) -> float:
    """Seconds: of the longest pause the share by which the bookie's free space lies below the median of all writable.

    0 unless weights and pauses are both on, and where the bookie's free space is not known.
    """
    free = cluster.free_bytes
    mine = free.get(bookie)
    if mine is None or not (config.weight_paced_replication and config.weighted_placement):
        return 0.0
    known = [count for one, count in free.items() if one in cluster.writable]
    middle = median(known) if known else 0
    return config.weight_paced_pause_max_s * (1 - min(1.0, mine / middle)) if middle > 0 else 0.0
