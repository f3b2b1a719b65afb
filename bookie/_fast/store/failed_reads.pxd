"""Reads that failed at the disk, or found damaged records: counted, and some kept for the log and for repair.

Read threads note them without the GIL; Python takes them once a second.
"""
from libc.stdint cimport int64_t

from bookie._fast.base.sync cimport pthread_mutex_t

cdef enum:
    FAILED_KEPT = 64             # different entries kept between two takes

cdef struct FailedRead:
    int64_t ledger
    int64_t entry                # -1 for the ledger's last entry

cdef struct FailedReads:
    pthread_mutex_t lock
    int64_t total                # atomic; since the start
    int64_t fresh                # since Python last took them
    FailedRead kept[FAILED_KEPT]  # the first of these, without repetition
    int kept_count

cdef void failed_reads_init(FailedReads* reads) noexcept nogil
cdef void failed_reads_note(FailedReads* reads, int64_t ledger, int64_t entry) noexcept nogil
# Return (number, [(ledger, entry) of the first ones, without repetition]) since the last call, or None.
cdef object failed_reads_take(FailedReads* reads)
