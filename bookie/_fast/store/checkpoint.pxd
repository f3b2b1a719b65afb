"""The flush thread: in each checkpoint it notes the marks, lets all directories be flushed at the same time, and trims
the journals.

The order of these steps is the durability contract (docs/architecture.md). One thread at a time; it never takes the
GIL between a request and the end of its checkpoint.
"""
from libc.stdint cimport int64_t

from bookie._fast.base.types cimport Status
from bookie._fast.store.stores cimport Storage

cdef class Checkpointer:
    cdef object stores_room
    cdef Storage* stores
    cdef int64_t interval_ns
    cdef public object catch_up      # continues a replay that a full disk interrupted; returns True at its end
    cdef _require_open(self)
    cdef _raise(self, Status status)
