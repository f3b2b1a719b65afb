"""Single reads in bulk on the wire: the frames of many requests, and the entry in an answer. Any thread, no state.

The caller owns every buffer. In V2 an answer's body is the entry itself.
"""
from libc.stddef cimport size_t
from libc.stdint cimport int64_t, uint8_t

from bookie._fast.base.types cimport Status

cdef struct ReadAnswerV3:
    const uint8_t* entry         # NULL: it carries none
    size_t size
    bint has_lac
    int64_t lac                  # the highest that the bookie knows

# Find the entry in a Response that carries a ReadResponse. CORRUPT when it does not, or is torn.
cdef Status read_answer_v3(const uint8_t* body, size_t size, ReadAnswerV3* answer) noexcept nogil
