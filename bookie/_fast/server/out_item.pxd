"""A piece of a connection's output: bytes copied into its own buffer, or a slice of pinned cache memory. No code.

A slice stays referenced only while its region is not wanted back: what the kernel does not take of it in the round that
finds it wanted is copied by `conn_settle`.
"""
from libc.stdint cimport uint8_t, uint64_t

from bookie._fast.cache.pages cimport Region

cdef struct OutItem:
    const uint8_t* base      # NULL: copied, at `at` of the connection's buffer
    uint64_t at
    uint64_t size
    Region* region
