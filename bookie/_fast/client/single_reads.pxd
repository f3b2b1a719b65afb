"""Frames of many single reads, and the entry in a V3 response to one. Any thread, no state.

The caller owns all buffers. In V2 the body of a response is the entry itself.
"""
from libc.stddef cimport size_t
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

from bookie._fast.base.types cimport Status

cdef struct ReadAnswerV3:
    const uint8_t* entry         # NULL if the response carries none
    size_t size
    bint has_lac
    int64_t lac                  # the highest LAC that the bookie knows

# Find the entry in a Response that holds a ReadResponse. Return OK, or CORRUPT if it holds none or is torn.
cdef Status read_answer_v3(const uint8_t* body, size_t size, ReadAnswerV3* answer) noexcept nogil

# Write the READ frames of `count` entries to `out`, one after the other; 24 bytes each.
cdef void frames_v2(int64_t ledger, const int64_t* entries, int64_t count, uint8_t* out) noexcept nogil
# The same in V3, where entries[k] is sent in transaction + k. Return the size of the frames; with `out` NULL only
# that.
cdef int64_t frames_v3(int64_t ledger, const int64_t* entries, int64_t count, uint64_t transaction,
                       uint8_t* out) noexcept nogil
# Write the frame of a V3 batch read, and return its size, at most 80 bytes.
cdef size_t batch_frame_v3(int64_t ledger, int64_t start, int32_t count, int64_t size, uint64_t transaction,
                           uint8_t* out) noexcept nogil
