"""The base of all other packages: C types, locks, files, checksums and limits. It knows nothing of ledgers.

`types` has the ids and the `Status` that every function of the data path returns; `cursor` reads and writes big-endian
numbers; `sync` has locks and atomics. Every byte on its way to a disk goes through `file`, so tests can make a write
fail there. `fatal` is the latch that stops every acknowledgement after the first failed write or sync. `bounds` is the
one place that states what the bookie can hold.

Begin with `types`, `file` and `fatal`.

Leans on: nothing.
"""
