"""A cluster on this machine, for development and tests: real bookies, no Java, no ZooKeeper.

with LocalCluster(3) as cluster:
    bk = BookKeeper(cluster.uri)

fork_server the process that loads the bookie once and forks one process for each
cluster     LocalCluster and its bookies
fixtures    the same for pytest: `pytest_plugins = ["bookie.local.fixtures"]`
"""

from bookie.local.cluster import LocalBookie, LocalCluster

__all__ = ["LocalBookie", "LocalCluster"]
