"""Reads back the leaves that a commit wrote, to notice writes that the disk has lost.

LMDB copies a page before it changes it, so a commit leaves the tree before it as it was, and both can be read. A page
whose write was lost may hold an older state of itself, which is sound. But the values of the new leaves, less those of
the leaves that they replace, must be what the transaction put, less what it deleted. Each value begins with its own
checksum, so the sum of these stands for all of them. The writing thread, before its next transaction.
"""
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from bookie._fast.base.types cimport Status
from bookie._fast.index.lmdb_pages cimport PageFile, Tree

cdef struct Difference:
    uint64_t gained              # sum of the values in new leaves, less those in replaced ones; modulo 2**64
    int64_t first                # least and greatest ledger in any of these leaves; first > last: none
    int64_t last

# Return what a value counts in a sum; 0 if it is too short to have a checksum.
cdef uint64_t value_sum(const uint8_t* value, size_t size) noexcept nogil
# Compare a tree with the one before it in the same file. Return OK; CORRUPT if a page is damaged; IO_ERROR; NO_MEMORY.
cdef Status tree_difference(const PageFile* file, const Tree* before, const Tree* after,
                            Difference* found) noexcept nogil
