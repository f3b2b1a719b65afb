"""A half of the write cache between its flush and its next turn: readers may still point into it.

Its flush does not wait for them: nobody finds the half any more, and it is wanted back. Only the swap that needs it
waits, for as long as the slowest I/O loop takes for three rounds and the read pool for one read of the disk. Runs on
the flush thread.
"""
from bookie._fast.store.stores cimport Store, Storage

cdef enum:
    SPARE_TICK_US = 500          # between two looks whether readers have let go

# The inactive half is flushed and indexed: out of the maps with it, and back as soon as nobody points into it. Under
# `writing`; never waits.
cdef void spare_clear(Storage* stores, Store* store) noexcept nogil
# Make spare what readers have let go of. True: nothing is left to wait for. Never waits.
cdef bint spares_take_back(Storage* stores) noexcept nogil
# Wait until no reader points into the inactive half; without any lock. False after a fatal failure.
cdef bint spare_await(Storage* stores, Store* store) noexcept nogil
