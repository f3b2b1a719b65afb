"""The adds in flight of one stream: which ids have a response, up to where without a gap, and how long each took.

A stream has consecutive ids and a bounded window, so this is an array by id. `stream_adds` says which stream a response
belongs to. No lock: the lock of the stream's connection guards it. Times are nanoseconds on the monotonic clock.
"""
from libc.stdint cimport int32_t, int64_t

cdef enum:
    HISTOGRAM_STEPS = 32                 # buckets for each doubling: an error of at most 3 %
    HISTOGRAM_BUCKETS = 60 * HISTOGRAM_STEPS

cdef class AddWindow:
    cdef readonly int32_t sender         # the number of the stream on its connection
    cdef readonly int64_t ledger
    cdef readonly int64_t base           # every lower id has a response
    cdef readonly int64_t end            # one past the last id sent
    cdef readonly int64_t capacity       # the most ids in flight
    cdef readonly int32_t error_code     # of the lowest id that was refused; error_entry is -1 if there is none
    cdef readonly int64_t error_entry
    cdef int64_t mask                    # the place of an id is id & mask
    cdef int64_t[::1] sent_ns            # by place; 0 once the response is there
    cdef int64_t[::1] histogram

    # Record the response to an entry, which is ignored if the entry is not in flight. `advance` follows the last one.
    cdef void answer(self, int64_t entry, int32_t code, int64_t now) noexcept nogil
    cdef void advance(self) noexcept nogil
