"""Garbage collection of one ledger directory for the policy in Python: removal of ledgers, compaction of entry logs.

One Python thread; set_rate, pause, resume, stop and progress: any thread. The GIL is released while a log or the index
is read. Close it before the DirectoryStore.
"""
from libc.stdint cimport uint32_t

from bookie._fast.base.types cimport Status
from bookie._fast.store.gc.compaction cimport Compaction, Result
from bookie._fast.store.storage cimport DirectoryStore, StorageEngine

cdef class DirectoryCollector:
    cdef Compaction compaction
    cdef StorageEngine engine
    cdef DirectoryStore handle
    cdef readonly str directory
    cdef bint stopped
    cdef dict live               # live bytes by log id, for logs that were closed before the walk
    cdef int need(self) except -1
    cdef int check(self, Status status, str doing) except -1
    cdef object collected(self, const Result* result)
    cdef object collect(self, uint32_t log_id, bint move)
