"""Reads that the disk did not answer, or answered with something else: counted, and one of them kept for the log.

Noted by read threads without the GIL, taken by Python once a second.
"""
from libc.stdint cimport int64_t

from bookie._fast.sync cimport pthread_mutex_t

cdef struct FailedReads:
    pthread_mutex_t lock
    int64_t total                # atomic; since the start
    int64_t fresh                # since Python last took them
    int64_t ledger               # the first of those
    int64_t entry                # -1: the last one

cdef void failed_reads_init(FailedReads* reads) noexcept nogil
cdef void failed_reads_note(FailedReads* reads, int64_t ledger, int64_t entry) noexcept nogil
# (how many, ledger and entry of the first) since the last call, or None.
cdef object failed_reads_take(FailedReads* reads)
