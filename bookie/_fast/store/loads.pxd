"""Spans that are being read from disk: a thread that wants an entry of one waits instead of reading it again.

For threads of the read pool.
"""
from libc.stdint cimport int64_t, uint32_t

from bookie._fast.base.bounds cimport READ_THREADS_MAX
from bookie._fast.base.sync cimport pthread_cond_t, pthread_mutex_t

cdef enum:
    LOADS_MOST = READ_THREADS_MAX

cdef struct Load:
    int64_t ledger
    int64_t first
    int64_t last

cdef struct Loads:
    pthread_mutex_t lock
    pthread_cond_t done
    Load spans[LOADS_MOST]
    uint32_t count

cdef void loads_init(Loads* loads) noexcept nogil
# Return True if this thread is to load [first, last] and call `load_end`; False if another one loaded `first`
# meanwhile.
cdef bint load_begin(Loads* loads, int64_t ledger, int64_t first, int64_t last) noexcept nogil
# Return the number of entries of a span being read that ends right before `first`, or 0.
cdef int64_t load_before(Loads* loads, int64_t ledger, int64_t first) noexcept nogil
cdef void load_end(Loads* loads, int64_t ledger, int64_t first) noexcept nogil
