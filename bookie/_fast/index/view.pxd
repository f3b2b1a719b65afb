"""The location index for Python: tests, offline tools and policy. C pointers stay inside these classes."""
from bookie._fast.base.file cimport Files
from bookie._fast.index.location cimport IndexReader, LocationIndex

cdef index_failure(int error, str path)

cdef class Index:
    # An open environment, including the writing side. Used by one thread.
    cdef LocationIndex* raw
    cdef list readers            # closed together with the index
    cdef Files files
    cdef int need(self) except -1

cdef class Reader:
    # Used by one thread at a time.
    cdef IndexReader* raw
    cdef int need(self) except -1
