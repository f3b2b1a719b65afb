"""Ledger metadata, and which bookies are alive: the part of the cluster that is kept outside of the bookies.

`driver` is the contract of a metadata store, `opening` makes the driver that a URI (`uri`) names, and `watching` is the
thread of each driver that re-reads what changed and tells listeners. `changing_logs` changes a log by compare-and-set.

    records      the values that every store keeps, and their bytes: ledgers, logs, lost replicas
    zookeeper    the store that Apache BookKeeper clusters use
    key_value    the store over versioned keys: LMDB in this process, or gRPC to the process that owns it
    bookies      who a bookie is, what it publishes, how it stays registered, and which bookies there are

Begin with `driver`, then `records.ledger_metadata`.

Leans on: bookie.admin_port, bookie.errors, bookie.durable, bookie.pb. Its order is a contract in pyproject.toml.
"""

from bookie.metadata.opening import open_driver

__all__ = ["open_driver"]
