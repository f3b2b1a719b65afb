"""Who waits for the end of which pending add of one ledger. Every call holds the GIL.

Callers may be added and leave in any thread. They are woken in the event loop's thread: a lock is released, anything
else gets `set_result(None)` unless its `done()` is true.
"""
from libc.stdint cimport int64_t

cdef class AddWaiters:
    # The callers by entry id.
    cdef dict by_id

    # Remember a caller of the add with this id.
    cdef int enter(self, int64_t id, one) except -1

    # Forget a caller that waits no more; it may have been woken already.
    cdef int leave(self, int64_t id, one) except -1

    # Wake the callers of the adds first, first + 1, ..., end - 1.
    cdef int wake(self, int64_t first, int64_t end) except -1

    # Wake all callers, in the order of the ids.
    cdef int wake_all(self) except -1
