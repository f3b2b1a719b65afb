"""The metadata of ledgers, and which bookies are alive: the part of the cluster that is kept outside the bookies.

`driver` is the interface of a metadata store, `opening` makes the driver that a URI (`uri`) names, and `watching` is
the thread of each driver that reads what changed and calls the listeners. `changing_logs` changes a log by
compare-and-set, and `copying` copies a cluster from one store to another one.

    records      the values that every store keeps, and their bytes: ledgers, logs, replication
    zookeeper    the store that Apache BookKeeper clusters use
    key_value    the store over versioned keys: LMDB in this process, or gRPC to the process that owns it
    etcd         the store in etcd: versioned keys, in the layout of Apache BookKeeper's driver for etcd
    bookies      a bookie's id, what it publishes, how it stays registered, and the state of all bookies

Begin with `driver`, then `records.ledger_metadata`.

Leans on: bookie.admin_port, bookie.errors, bookie.durable, bookie.pb. Its order is a contract in pyproject.toml.
"""

from bookie.metadata.opening import open_driver

__all__ = ["open_driver"]
