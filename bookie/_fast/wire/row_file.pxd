"""An opened file whose records become rows, a batch at a time. One thread; a descriptor of its own."""
from bookie._fast.base.file cimport Files
from bookie._fast.base.types cimport Status
from bookie._fast.wire.record_rows cimport RowSheet

cdef class RowFile:
    # What each kind of file adds is `fill`, which writes rows until the sheet is full or the file ends.
    cdef readonly object path
    cdef Files files
    cdef RowSheet sheet
    cdef int fd
    cdef Status status           # OK while there are more rows; else how they ended
    cdef int open(self, path, RowSheet sheet, Files files) except -1
    cdef Status fill(self) except *
    cdef void release(self) noexcept
