"""An entry log as rows, a batch at a time, and the way on behind damage. One thread; a descriptor of its own."""
from libc.stdint cimport uint64_t

from bookie._fast.base.pace cimport Pacer
from bookie._fast.entrylog.scan cimport LogCursor
from bookie._fast.wire.row_file cimport RowFile

cdef class LogRows(RowFile):
    # The status is END or TORN (at cursor.pos) after the last row.
    cdef LogCursor cursor
    cdef Pacer pace           # kept alive; None: as fast as the disk
    cdef uint64_t suspect        # the first of the last records, if no digest of any of them held; else 0
