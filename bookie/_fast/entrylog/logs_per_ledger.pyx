"""Counts by ledger, the oldest of which make room."""
from libc.stdint cimport int64_t, uint32_t
from libc.stdlib cimport calloc, free

from bookie._fast.base.by_age cimport aged_drop, aged_find, aged_put, by_age_free, by_age_init
from bookie._fast.base.by_ledger cimport Chained
from bookie._fast.base.op_stats cimport op_note
from bookie._fast.base.sync cimport bk_add


cdef bint log_counts_init(LogCounts* counts, uint32_t most) noexcept nogil:
    counts.most = most
    return by_age_init(&counts.counts)


cdef void free_count(Chained* thing) noexcept nogil:
    free(thing)


cdef void log_counts_free(LogCounts* counts) noexcept nogil:
    by_age_free(&counts.counts, free_count)


cdef void finish(LogCounts* counts, LogCount* count) noexcept nogil:
    aged_drop(&counts.counts, &count.aged)
    op_note(&counts.noted, count.logs, 1)
    free(count)


cdef LogCount* new_count(LogCounts* counts, int64_t ledger) noexcept nogil:
    cdef LogCount* count
    if counts.counts.table.count >= counts.most and counts.counts.oldest != NULL:
        finish(counts, <LogCount*> counts.counts.oldest)
    count = <LogCount*> calloc(1, sizeof(LogCount))
    if count == NULL:
        return NULL
    count.aged.chained.ledger = ledger
    aged_put(&counts.counts, &count.aged)
    return count


cdef void log_counts_begin(LogCounts* counts, int64_t ledger) noexcept nogil:
    cdef LogCount* count = <LogCount*> aged_find(&counts.counts, ledger)
    if count == NULL:
        count = new_count(counts, ledger)
    if count != NULL:
        count.logs += 1
        if count.logs == 2:
            bk_add(&counts.several, 1)


cdef void log_counts_end(LogCounts* counts, int64_t ledger) noexcept nogil:
    cdef LogCount* count = <LogCount*> aged_find(&counts.counts, ledger)
    if count != NULL:
        finish(counts, count)
