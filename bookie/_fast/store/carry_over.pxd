"""What a directory that cannot be flushed has in memory, journaled again: older journal files need not wait for it.

Journal files go when the lowest mark has passed them, so one directory whose disk is full, or whose index has to be
mended, would keep what all others journal. Once it holds back more than a journal's `hurry_bytes`, the records of its
write cache and of its changed ledgers are appended to the journals again, which is a flush in effect: when they are
synced, its mark may move to where the copying began. That takes no room on its own disk: the mark is written in place.

The flush thread's, between checkpoints, while the journals' threads run. Nothing here waits for room on a journal's
disk. What was copied when it came to nothing is replayed twice, which changes nothing: only the newest copy of an entry
is journaled, under its shard's lock, so that adds beside it follow in their order.
"""
from bookie._fast.base.types cimport Status
from bookie._fast.store.stores cimport Storage

# OK also where there is nothing to do, or a directory cannot be helped; IO_ERROR: a mark was not written.
cdef Status stores_carry_over(Storage* stores) noexcept nogil
# Whether checkpoints lag so far behind that one is due before its time. Any thread.
cdef bint stores_hurry(Storage* stores) noexcept nogil
