"""A journal file as rows, read in batches. One thread; a descriptor of its own."""
from libc.stdint cimport int64_t, uint64_t

from bookie._fast.base.types cimport Status
from bookie._fast.wire.row_file cimport RowFile

cdef class JournalRows(RowFile):
    cdef readonly object damaged_at      # where bad bytes are followed by a good group, or None
    cdef readonly bint torn              # the tail is cut off
    cdef readonly int version
    cdef int64_t journal_id
    cdef uint64_t start                  # where the next scan begins: at a record, or at the group that holds it
    cdef uint64_t next                   # records below this position have been returned
    cdef int check(self, Status status) except -1
