"""Ledgers that may have lost runs with a damaged part of the index: an entry that is not found may exist all the same.

The index's table `doubts` keeps them over a restart (docs/formats/index.md). In memory: any thread; the lock is taken
only while there are any.
"""
from libc.stdint cimport int64_t, uint8_t

from bookie._fast.base.by_ledger cimport ByLedger
from bookie._fast.base.sync cimport pthread_mutex_t
from bookie._fast.base.types cimport Status

cdef enum:
    DOUBT_VERSION = 1
    DOUBT_VALUE_BYTES = 8
    DOUBT_LASTING = 1            # flag: the entry logs were searched, but may still hold entries that were not found

cdef struct Doubts:
    pthread_mutex_t lock
    ByLedger table
    int64_t count                # atomic
    int64_t ended                # atomic; how many were dropped since the index was opened

cdef bint doubts_init(Doubts* doubts) noexcept nogil
cdef void doubts_free(Doubts* doubts) noexcept nogil
# Return whether it is unproven that an entry of this ledger does not exist when it is not found.
cdef bint doubts_hold(Doubts* doubts, int64_t ledger) noexcept nogil
# The same for a snapshot that was taken when `ended` doubts had ended. A doubt ends when its runs are in a later one.
cdef bint doubts_hold_since(Doubts* doubts, int64_t ledger, int64_t ended) noexcept nogil
# Return whether the entry logs were searched for this ledger without settling the doubt.
cdef bint doubts_lasting(Doubts* doubts, int64_t ledger) noexcept nogil
# Return False if there is no memory.
cdef bint doubts_add(Doubts* doubts, int64_t ledger, bint lasting) noexcept nogil
cdef void doubts_drop(Doubts* doubts, int64_t ledger) noexcept nogil
# Return a list of (ledger, lasting), ascending.
cdef object doubts_list(Doubts* doubts)

cdef void doubt_pack(int64_t ledger, bint lasting, uint8_t* key, uint8_t* value) noexcept nogil
# Return OK or CORRUPT.
cdef Status doubt_unpack(const void* key, size_t key_size, const void* value, size_t size, int64_t* ledger,
                         bint* lasting) noexcept nogil
