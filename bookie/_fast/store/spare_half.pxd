"""A half of the write cache between its flush and its next turn, while responses may still refer to it.

Its flush does not wait for them: no new reader finds the half, and its pins are wanted. Only the swap that needs it
waits, for three rounds of the slowest I/O loop and one read of the disk by the read pool. Runs on the thread that
flushes the directory.
"""
from bookie._fast.store.stores cimport Storage, Store

cdef enum:
    SPARE_TICK_US = 500          # between two looks at the pins

# Remove the inactive half, which is flushed and indexed, from the maps; it is reused once it is not pinned. Under
# `writing`; never waits.
cdef void spare_clear(Storage* stores, Store* store) noexcept nogil
# The same, but let readers go on using its memory, if halves are kept: the next swap gives it other memory.
cdef void spare_leave(Storage* stores, Store* store) noexcept nogil
# Make a half that is not pinned any more the spare one again, or all of them. Return True if none is left to wait for.
# Never waits.
cdef bint spare_take_back(Storage* stores, Store* store) noexcept nogil
cdef bint spares_take_back(Storage* stores) noexcept nogil
# Wait until the inactive half is not pinned, without any lock. Return False after a fatal failure.
cdef bint spare_await(Storage* stores, Store* store) noexcept nogil
