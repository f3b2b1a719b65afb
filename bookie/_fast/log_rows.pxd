"""An entry log as rows, a batch at a time, and the way on behind damage. One thread; a descriptor of its own."""
from libc.stdint cimport uint64_t

from bookie._fast.file cimport Files
from bookie._fast.log_scan cimport LogCursor
from bookie._fast.record_rows cimport RowSheet
from bookie._fast.types cimport Status

cdef class LogRows:
    # OK while there are more; END or TORN (at cursor.pos) after the last row.
    cdef readonly object path
    cdef Files files
    cdef RowSheet sheet
    cdef LogCursor cursor
    cdef int fd
    cdef Status status
    cdef uint64_t suspect        # the first of the last records, if no digest of any of them held; else 0
