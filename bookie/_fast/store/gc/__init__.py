"""What reclaims and verifies a ledger directory in the background, at a configured pace and beside all traffic.

`collector` is the interface for the policy in Python (`bookie.storage.garbage`). `ledger_removal` deletes ledgers and
`kept_fences` remembers their fences; `liveness` tells whether the index points at a record; `compaction` moves what is
live and unlinks the log. `scrub` compares entry logs with the index, and `index_repair` mends a damaged index while the
bookie serves.

Begin with `collector`, then `compaction`.

Leans on: base, entrylog, index, cache, store.
"""
