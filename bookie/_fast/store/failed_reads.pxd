"""Reads that the disk did not answer, or answered with something else: counted, and some kept for log and repair.

Noted by read threads without the GIL, taken by Python once a second.
"""
from libc.stdint cimport int64_t

from bookie._fast.base.sync cimport pthread_mutex_t

cdef enum:
    FAILED_KEPT = 64             # different entries kept between two looks

cdef struct FailedRead:
    int64_t ledger
    int64_t entry                # -1: the last one

cdef struct FailedReads:
    pthread_mutex_t lock
    int64_t total                # atomic; since the start
    int64_t fresh                # since Python last took them
    FailedRead kept[FAILED_KEPT]  # the first of those, each once
    int kept_count

cdef void failed_reads_init(FailedReads* reads) noexcept nogil
cdef void failed_reads_note(FailedReads* reads, int64_t ledger, int64_t entry) noexcept nogil
# (how many, [(ledger, entry) of the first of them, each once]) since the last call, or None.
cdef object failed_reads_take(FailedReads* reads)
