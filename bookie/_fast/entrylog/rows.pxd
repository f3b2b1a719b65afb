"""An entry log as rows, read in batches, which can continue after damage. One thread; a descriptor of its own."""
from libc.stdint cimport uint64_t

from bookie._fast.base.pace cimport Pacer
from bookie._fast.entrylog.scan cimport LogCursor
from bookie._fast.wire.row_file cimport RowFile

cdef class LogRows(RowFile):
    # The status after the last row is END or TORN (at cursor.pos).
    cdef LogCursor cursor
    cdef Pacer pace              # kept alive; None for no limit
    cdef uint64_t suspect        # offset of the first of the last records, if none of these had a valid digest; else 0
