"""Spans on their way from the disk: who wants an entry of one waits for it instead of reading it again.

Read pool threads.
"""
from libc.stdint cimport int64_t, uint32_t

from bookie._fast.base.sync cimport pthread_cond_t, pthread_mutex_t

cdef enum:
    LOADS_MOST = 256         # read threads

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
# True: this thread loads [first, last] and calls `load_end`. False: somebody was loading `first`, and is done now.
cdef bint load_begin(Loads* loads, int64_t ledger, int64_t first, int64_t last) noexcept nogil
# Entries of a span under way that ends right before `first`; 0: there is none.
cdef int64_t load_before(Loads* loads, int64_t ledger, int64_t first) noexcept nogil
cdef void load_end(Loads* loads, int64_t ledger, int64_t first) noexcept nogil
