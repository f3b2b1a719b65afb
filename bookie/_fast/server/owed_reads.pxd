"""An estimate of the bytes that the read pool will return for one connection, whose reads from disk must not use up
the budget of output.

Belongs to the connection's I/O loop.
"""
from libc.stdint cimport uint64_t

from bookie._fast.store.gather cimport Answer, ReadRequest

cdef struct OwedReads:
    uint64_t singles         # jobs of the pool that read one entry
    uint64_t batch_entries   # the most entries that its other jobs read,
    uint64_t batch_bytes     # and the most bytes
    uint64_t entry_bytes     # size of an entry, estimated from the last ones read; 0 before the first job

# Account for a submitted job, and for one that the read pool has finished.
cdef void owed_begins(OwedReads* owed, const ReadRequest* request) noexcept nogil
cdef void owed_ends(OwedReads* owed, const ReadRequest* request, const Answer* answer) noexcept nogil
# Return the bytes that all jobs bring if their entries are as large as the last ones.
cdef inline uint64_t owed_bytes(const OwedReads* owed) noexcept nogil:
    return owed.singles * owed.entry_bytes + min(owed.batch_bytes, owed.batch_entries * owed.entry_bytes)
