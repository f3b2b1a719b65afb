"""Carry-over: journals again what a directory that cannot be flushed has in memory, so that old journal files can go.

A journal file is removed when all marks have passed it, so a directory whose disk is full, or whose index needs
repair, would retain what all directories journal. Once it holds back more than a journal's `hurry_bytes`, the records
of its write cache and of its changed ledgers are appended to the journals again, and so are those of its entry logs
that are not in the index yet, which is as good as a flush: when they are synced, its mark may move to where the
copying began. That takes no space on its own disk, since the mark is overwritten.

Runs on the flush thread between checkpoints, while the journals' threads run. It never waits for space on a journal's
disk. Copies of a failed attempt are replayed twice, which is harmless: only the newest copy of an entry is journaled,
under its shard's lock, so that concurrent adds follow in their order.
"""
from bookie._fast.base.types cimport Status
from bookie._fast.store.stores cimport Storage

# Carry over all directories that hold back too much. OK also if there is none, or one cannot be helped; IO_ERROR: a
# mark was not written.
cdef Status stores_carry_over(Storage* stores) noexcept nogil
# Return whether checkpoints lag so far behind that one is due before its time. Any thread.
cdef bint stores_hurry(Storage* stores) noexcept nogil
