"""The metadata store over versioned keys with sessions: the same driver for a store in this process or in another
one.

`keys` is the interface of such a store. `embedded` keeps the keys in LMDB and is owned by one process; `remote`
reaches it from other processes, through the admin port of its owner; `connected` is what it shares with the store in
etcd. `driver`, `logs` and `replication` implement the
protocols of `bookie.metadata.driver` on either of them, and their docstrings list the keys.

Begin with `keys`, then `driver` and `embedded`.

Leans on: metadata.driver, metadata.watching, metadata.records, bookie.admin_port, the lmdb package.
"""
