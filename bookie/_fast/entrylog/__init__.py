"""Entry log files, which hold the entries of all ledgers after a flush; docs/formats/entry-log.md has the layout.

`writer` appends, rotates and syncs the log of one thread; `set` is what a ledger directory writes to: one log for all
ledgers, or one for each. `scan` verifies a file from front to end, `reader` fetches entries at known offsets, and `map`
tells which ledgers a log holds. `ids` hands out log ids and knows which logs are still open.

Begin with `scan`, then `writer`.

Leans on: base, wire.
"""
