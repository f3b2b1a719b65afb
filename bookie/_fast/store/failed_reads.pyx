"""A counter and examples under one lock: failures are rare, and if they are not, the disk is slower than the lock."""
from libc.string cimport memcpy, memset

from bookie._fast.base.sync cimport (
    bk_add_relaxed,
    bk_load,
    pthread_mutex_init,
    pthread_mutex_lock,
    pthread_mutex_unlock,
)


cdef void failed_reads_init(FailedReads* reads) noexcept nogil:
    memset(reads, 0, sizeof(FailedReads))
    pthread_mutex_init(&reads.lock, NULL)


cdef void failed_reads_note(FailedReads* reads, int64_t ledger, int64_t entry) noexcept nogil:
    cdef int i
    bk_add_relaxed(&reads.total, 1)
    pthread_mutex_lock(&reads.lock)
    for i in range(reads.kept_count):
        if reads.kept[i].ledger == ledger and reads.kept[i].entry == entry:
            break
    else:
        if reads.kept_count < FAILED_KEPT:
            reads.kept[reads.kept_count] = FailedRead(ledger, entry)
            reads.kept_count += 1
    reads.fresh += 1
    pthread_mutex_unlock(&reads.lock)


cdef object failed_reads_take(FailedReads* reads):
    cdef FailedRead[FAILED_KEPT] kept
    cdef int64_t fresh
    cdef int count, i
    if bk_load(&reads.fresh) == 0:
        return None
    with nogil:
        pthread_mutex_lock(&reads.lock)
        fresh, count = reads.fresh, reads.kept_count
        memcpy(kept, reads.kept, sizeof(reads.kept))
        reads.fresh = reads.kept_count = 0
        pthread_mutex_unlock(&reads.lock)
    return fresh, [(kept[i].ledger, kept[i].entry) for i in range(count)]
