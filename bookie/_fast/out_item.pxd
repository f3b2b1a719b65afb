"""A piece of a connection's output. No code."""
from libc.stdint cimport uint8_t, uint64_t

from bookie._fast.pages cimport Region

cdef struct OutItem:
    const uint8_t* base      # NULL: copied, at `at` of the connection's buffer
    uint64_t at
    uint64_t size
    Region* region
