"""A cluster on this machine, for development and tests: real bookies, without Java and ZooKeeper.

    with LocalCluster(3) as cluster, BookKeeper(cluster.uri) as bk:
        ...

cluster      LocalCluster and its bookies; begin reading here
etcd         a member of etcd that holds the metadata, for clusters that want it
fork_server  the process that imports the bookie once and forks a process for each one
fixtures     pytest fixtures: `pytest_plugins = ["bookie.local.fixtures"]`
"""

from bookie.local.cluster import LocalBookie, LocalCluster

__all__ = ["LocalBookie", "LocalCluster"]
