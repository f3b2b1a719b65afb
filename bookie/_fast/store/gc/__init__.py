"""Reclaims and verifies the disk space of a ledger directory in the background, at a configured pace.

`collector` is the interface for the policy in Python (`bookie.storage.garbage`). `ledger_removal` deletes ledgers and
`kept_fences` remembers their fences; `liveness` tells whether the index points at a record; `compaction` moves live
records and unlinks the log. `scrub` compares entry logs with the index, and `index_repair` repairs a damaged index
while the bookie serves.

Begin with `collector`, then `compaction`.

Leans on: base, entrylog, index, cache, store.
"""
