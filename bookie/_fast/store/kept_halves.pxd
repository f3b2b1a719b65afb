"""Flushed halves of the write cache that stay readable until their memory is needed.

What was just flushed is what readers want most: those at the tail that fall behind a little, and those that come back
after a short absence. So a flush does not empty its half. It leaves memory and runs to the list of kept halves, whose
oldest one gives its memory to the half that takes adds next.

A reader finds in them what the index has, or what it had before a newer half, which is searched first. So they are
dropped in the order of their flushes, oldest first, and none that was flushed is left out between two of them.
"""
from libc.stdint cimport int64_t

from bookie._fast.store.stores cimport Storage, Store

# Keep the inactive half, which is flushed and indexed, and leave its place without memory. Return False if it cannot be
# kept, with the half as it was: before the start is complete, while the directory lags, or if it holds no entries.
# Unless it is empty, the older ones are not read any more then either. Under `writing`; never waits.
cdef bint kept_take(Store* store, int64_t half) noexcept nogil
# Give memory to the inactive half if it has none: that of the oldest kept half once no reader points into it, or new
# memory. No locks. Return False after a fatal failure.
cdef bint kept_renew(Storage* stores, Store* store) noexcept nogil
# Drop kept halves until they and the inactive one fit their budget. No locks. Return False after a fatal failure.
cdef bint kept_trim(Storage* stores, Store* store) noexcept nogil
