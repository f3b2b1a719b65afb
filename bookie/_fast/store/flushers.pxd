"""A thread for each ledger directory, its flusher: directories are flushed at the same time, and beside a replay.

One thread at a time gives jobs to the flushers: that of the start, or the flush thread. Between the beginning of a job
and its end it does not touch the store, except as adds do. A flusher that has done its job signals `flush_wanted`.
"""
from bookie._fast.base.types cimport Status
from bookie._fast.store.flush_job cimport FlushJob
from bookie._fast.store.stores cimport Storage, Store

ctypedef Status (*FlushWork)(Storage* stores, Store* store) noexcept nogil

# Give the store's flusher a job, when the one before is done. Without flushers, do it in the calling thread.
cdef void flusher_begin(Storage* stores, Store* store, FlushWork work) noexcept nogil
# Return whether the store's flusher has done its job.
cdef bint flusher_is_idle(Store* store) noexcept nogil
# Wait until the job is done, and return how it ended; OK if none was given since the last call.
cdef Status flusher_end(Store* store) noexcept nogil
# Do the same job in all stores at the same time, that of the last one in the calling thread. `found` gets how each
# ended.
cdef void flush_everywhere(Storage* stores, FlushWork work, Status* found) noexcept nogil

cdef class Flushers:
    cdef object stores_room
    cdef Storage* stores
    cdef void serve(self, FlushJob* job, bint served) noexcept nogil
