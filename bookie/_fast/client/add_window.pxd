"""The adds in flight of one stream: which ids have a response, up to where without a gap, and how long each took.

A stream has consecutive ids and a bounded window, so this is an array by id. `adds_in_flight` serves many senders with
any ids by a hash table, which takes twice as long for each add. No lock: the lock of the channel guards it. Times are
nanoseconds on the monotonic clock.
"""
from libc.stdint cimport int32_t, int64_t, uint8_t

from bookie._fast.client.framing_v2 cimport Response

cdef enum:
    HISTOGRAM_STEPS = 32                 # buckets for each doubling: an error of at most 3 %
    HISTOGRAM_BUCKETS = 60 * HISTOGRAM_STEPS

cdef class AddWindow:
    cdef readonly int64_t ledger
    cdef readonly int64_t base           # every lower id has a response
    cdef readonly int64_t end            # one past the last id sent
    cdef readonly int64_t capacity       # the most ids in flight
    cdef int32_t op                      # of a response to an add, in the channel's protocol
    cdef bint by_request                 # V3: responses carry transaction request_base + entry; V2: ledger and entry
    cdef int64_t request_base
    cdef readonly int32_t error_code     # of the lowest id that was refused; error_entry is -1 if there is none
    cdef readonly int64_t error_entry
    cdef int64_t[::1] sent_ns            # by id modulo capacity; 0 once the response is there
    cdef int64_t[::1] histogram

    cdef int64_t take(self, Response* rows, int64_t count, int64_t now) noexcept nogil
