"""The metadata store in ZooKeeper, in Apache BookKeeper's own tree: Java clients and bookies share the cluster.

`driver` puts the parts together. `session` sends every request and knows what a lost answer means; `nodes` changes
nodes that hold one value each. `layout` and `ledger_paths` say where the node of a ledger is. The other modules each
implement one protocol of `bookie.metadata.driver`: `bookies`, `ledgers` with `ids`, `logs`, `replication`, `election`.

Begin with `session`, then `nodes` and `ledgers`.

Leans on: metadata.driver, metadata.watching, metadata.records, kazoo.
"""
