"""The metadata store in ZooKeeper, in Apache BookKeeper's own tree, so that Java clients and bookies share the
cluster.

`driver` puts the parts together. `session` sends every request, and handles lost answers; `nodes` changes nodes that
hold one value each. `layout` and `ledger_paths` define where the node of a ledger is. Each of the other modules
implements one protocol of `bookie.metadata.driver`: `bookies`, `ledgers` with `ids`, `logs`, `replication`,
`election`.

Begin with `session`, then `nodes` and `ledgers`.

Leans on: metadata.driver, metadata.watching, metadata.records, kazoo.
"""
