"""Records of one ledger directory's entry logs against its index, both ways: what a scrub asks of compiled code.

One Python thread; the GIL is dropped for everything that asks the index. Closed before the DirectoryStore is.
"""
from bookie._fast.base.types cimport Status
from bookie._fast.index.location cimport IndexReader
from bookie._fast.store.gc.liveness cimport Liveness
from bookie._fast.store.storage cimport DirectoryStore

cdef class Scrubber:
    cdef DirectoryStore handle
    cdef IndexReader* reader
    cdef Liveness liveness
    cdef readonly str directory
    cdef int need(self) except -1
    cdef int check(self, Status status, str doing) except -1
