"""An open file whose records are read as rows, in batches. One thread; it has a descriptor of its own."""
from bookie._fast.base.file cimport Files
from bookie._fast.base.types cimport Status
from bookie._fast.wire.record_rows cimport RowSheet

cdef class RowFile:
    # Subclasses for each kind of file implement `fill`, which writes rows until the sheet is full or the file ends.
    cdef readonly object path
    cdef Files files
    cdef RowSheet sheet
    cdef int fd
    cdef Status status           # OK while there are more rows; else how the scan ended
    cdef int open(self, path, RowSheet sheet, Files files) except -1
    cdef Status fill(self) except *
    cdef void release(self) noexcept
