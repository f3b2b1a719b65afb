"""Compares the records of one ledger directory's entry logs with its index, in both directions, for the scrub.

One Python thread; the GIL is released while the index is read. Close it before the DirectoryStore.
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
