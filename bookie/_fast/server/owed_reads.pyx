"""Counts the jobs that a connection has in the read pool."""
from libc.stdint cimport uint64_t

from bookie._fast.store.gather cimport RECORD_LEAST

cdef enum:
    ENTRY_FIRST = 4096       # the estimate before any entry was read


cdef inline uint64_t entries_most(const ReadRequest* request) noexcept nogil:
    return min(<uint64_t> request.count, request.bytes // RECORD_LEAST + 1)


cdef void owed_begins(OwedReads* owed, const ReadRequest* request) noexcept nogil:
    if request.count == 1:
        owed.singles += 1
    else:
        owed.batch_entries += entries_most(request)
        owed.batch_bytes += request.bytes
    if owed.entry_bytes == 0:
        owed.entry_bytes = ENTRY_FIRST


cdef void owed_ends(OwedReads* owed, const ReadRequest* request, const Answer* answer) noexcept nogil:
    if request.count == 1:
        owed.singles -= 1
    else:
        owed.batch_entries -= entries_most(request)
        owed.batch_bytes -= request.bytes
    if answer.count:
        owed.entry_bytes = max(answer.bytes // answer.count, owed.entry_bytes // 2)
