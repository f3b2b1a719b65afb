"""The work of the flush thread: swap the halves, sort, append to entry logs, sync, index, write the mark, trim
journals.

The order of these steps is the durability contract (docs/architecture.md). One thread at a time; it never takes the
GIL between a request and the end of its checkpoint.
"""
from libc.stdint cimport int64_t, uint64_t

from bookie._fast.base.types cimport Status
from bookie._fast.store.stores cimport Storage, Store

# Steps between which tests inject faults and crashes, in this order.
cdef enum Step:
    STEP_MARKED = 1          # the journals' positions are recorded
    STEP_SWAPPED = 2
    STEP_APPENDED = 3
    STEP_LOG_SYNCED = 4
    STEP_INDEX_COMMITTED = 5
    STEP_CLEARED = 6
    STEP_MARK_WRITTEN = 7
    STEP_TRIMMED = 8

# Flush one store. OK: all entries cached before the call and all changed ledgers are on disk and indexed.
cdef Status store_flush(Storage* stores, Store* store) noexcept nogil
# Flush all stores, then move the mark and trim the journals.
cdef Status stores_checkpoint(Storage* stores) noexcept nogil

cdef class Checkpointer:
    cdef object stores_room
    cdef Storage* stores
    cdef int64_t interval_ns
    cdef public object catch_up      # continues a replay that a full disk interrupted; returns True at its end
    cdef _require_open(self)
    cdef _raise(self, Status status)
