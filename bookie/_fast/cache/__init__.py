"""Entries in memory. A page holds records of one ledger; a run is a view of consecutive records of one page.

`pages` and `runs` are the data structure; `write` is the write cache, two halves of which one is flushed while the
other takes adds. `memory` is what halves get from the system and pass on to each other. `read` is the read cache, a
ring of segments that are reused as a whole. `readahead` decides how much a miss reads, `rereads` notices readers that
come back, and `uncached` holds what the ring cannot take at the moment.

Begin with `pages` and `runs`.

Leans on: base.
"""
