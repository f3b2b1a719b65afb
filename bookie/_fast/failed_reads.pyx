"""A counter and an example under a lock: failures are seldom, and when they are not, the disk is slower than this."""
from libc.string cimport memset

from bookie._fast.sync cimport bk_add_relaxed, bk_load, pthread_mutex_init, pthread_mutex_lock, pthread_mutex_unlock


cdef void failed_reads_init(FailedReads* reads) noexcept nogil:
    memset(reads, 0, sizeof(FailedReads))
    pthread_mutex_init(&reads.lock, NULL)


cdef void failed_reads_note(FailedReads* reads, int64_t ledger, int64_t entry) noexcept nogil:
    bk_add_relaxed(&reads.total, 1)
    pthread_mutex_lock(&reads.lock)
    if reads.fresh == 0:
        reads.ledger = ledger
        reads.entry = entry
    reads.fresh += 1
    pthread_mutex_unlock(&reads.lock)


cdef object failed_reads_take(FailedReads* reads):
    cdef int64_t fresh, ledger, entry
    if bk_load(&reads.fresh) == 0:
        return None
    with nogil:
        pthread_mutex_lock(&reads.lock)
        fresh, ledger, entry = reads.fresh, reads.ledger, reads.entry
        reads.fresh = 0
        pthread_mutex_unlock(&reads.lock)
    return fresh, ledger, entry
