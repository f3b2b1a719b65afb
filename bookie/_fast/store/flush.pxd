"""The flush of one directory: swap the halves, sort, append to the entry log, sync, commit the index.

The order of these steps is the durability contract (docs/architecture.md). One thread at a time for each directory: its
flusher, or the thread that gives it jobs (module store.flushers). It never takes the GIL.
"""
from bookie._fast.base.types cimport Status
from bookie._fast.store.stores cimport Storage, Store

# Flush one store. OK: all entries cached before the call and all changed ledgers are on disk and indexed.
cdef Status store_flush(Storage* stores, Store* store) noexcept nogil
# The same, but of many ledgers most runs may be left pending (module store.index_slices).
cdef Status store_flush_for_room(Storage* stores, Store* store) noexcept nogil
# Mark the logs of ledgers whose end was announced. This precedes the swap, so that all entries added before the
# announcement are in the half. Deletion marks ledgers too, with the same lock.
cdef void store_take_marks(Store* store) noexcept nogil
# Let the empty half take adds, once no reader points into it, as the first part of a flush. The other
# one must be flushed. IO_ERROR after a fatal failure.
cdef Status store_swap(Storage* stores, Store* store) noexcept nogil
# Flush the half that takes no adds if it is not flushed yet, as the second part. After a failure it stays as it is.
cdef Status store_flush_spare(Storage* stores, Store* store) noexcept nogil
# The same, and put all runs that wait for the index, in as many transactions as that takes.
cdef Status store_flush_spare_whole(Storage* stores, Store* store) noexcept nogil
# Set the fatal latch if a write or sync failed, so that nothing is acknowledged while the flush cleans up. Other
# failures (no space, no memory, an index that needs repair) have left nothing behind, and the flush is repeated.
cdef Status or_end(Status status) noexcept nogil
