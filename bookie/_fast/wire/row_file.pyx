"""The common part of scans of entry logs and journals: the open file, and the way from a sheet to rows."""
import os

cimport cython
from bookie._fast.base.open_file cimport open_to_read


@cython.no_gc_clear
cdef class RowFile:
    """An open file whose records are read as rows. Close it, or drop it. OSError if the file cannot be read."""

    def __cinit__(self, *_arguments, **_named):
        self.fd = -1
        self.status = Status.END

    def __dealloc__(self):
        self.release()

    cdef int open(self, path, RowSheet sheet, Files files) except -1:
        self.path = os.fspath(path)
        self.sheet = sheet
        self.files = files if files is not None else Files()
        self.fd = open_to_read(self.files.ops, path)
        self.status = Status.OK
        return 0

    cdef Status fill(self) except *:
        """Return FULL if the sheet is full, else how the rows end. Raise if the file cannot be read."""
        raise TypeError(f"{type(self).__name__} reads no records")

    cdef void release(self) noexcept:
        if self.fd >= 0:
            self.files.ops.close(self.fd)
            self.fd = -1
            self.status = Status.END

    def close(self):
        """Close the file. A second call does nothing."""
        self.release()

    def read(self):
        """Return the next Rows, or None after the last ones."""
        cdef Status status
        cdef size_t rows = 0
        if self.status != Status.OK:
            return None
        self.sheet.begin()
        while True:
            status = self.fill()
            if self.sheet.ask():
                continue                     # the sheet takes the same record now
            rows = self.sheet.sheet.rows
            if status != Status.FULL or rows:
                break
            self.sheet.begin()               # allocate room for one payload larger than a usual sheet
        if status != Status.FULL:
            self.status = status
        return self.sheet.take() if rows else None
