"""A piece of a connection's output: bytes copied to its own buffer, or a slice of pinned cache memory. No code.

A slice refers to its region only until that is wanted: in the round in which the loop notices it, `conn_settle` copies
what the kernel does not accept.
"""
from libc.stdint cimport uint8_t, uint64_t

from bookie._fast.cache.pages cimport Region

cdef struct OutItem:
    const uint8_t* base      # NULL: copied, at offset `at` of the connection's buffer
    uint64_t at
    uint64_t size
    Region* region
