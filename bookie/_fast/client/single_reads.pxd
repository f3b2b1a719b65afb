"""Frames of many single reads, and the entry in a V3 response to one. Any thread, no state.

The caller owns all buffers. In V2 the body of a response is the entry itself.
"""
from libc.stddef cimport size_t
from libc.stdint cimport int64_t, uint8_t

from bookie._fast.base.types cimport Status

cdef struct ReadAnswerV3:
    const uint8_t* entry         # NULL if the response carries none
    size_t size
    bint has_lac
    int64_t lac                  # the highest LAC that the bookie knows

# Find the entry in a Response that holds a ReadResponse. Return OK, or CORRUPT if it holds none or is torn.
cdef Status read_answer_v3(const uint8_t* body, size_t size, ReadAnswerV3* answer) noexcept nogil
