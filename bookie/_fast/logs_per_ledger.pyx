"""Counts by ledger, in a list by age."""
from libc.stdint cimport int64_t, uint32_t
from libc.stdlib cimport calloc, free

from bookie._fast.by_ledger cimport chained_clear, chained_drop, chained_find, chained_free, chained_init, chained_put
from bookie._fast.op_stats cimport op_note
from bookie._fast.sync cimport bk_add


cdef bint log_counts_init(LogCounts* counts, uint32_t most) noexcept nogil:
    counts.oldest = counts.newest = NULL
    counts.most = most
    return chained_init(&counts.table)


cdef void free_count(Chained* thing) noexcept nogil:
    free(thing)


cdef void log_counts_free(LogCounts* counts) noexcept nogil:
    chained_clear(&counts.table, free_count)
    chained_free(&counts.table)


cdef void finish(LogCounts* counts, LogCount* count) noexcept nogil:
    if count.older != NULL:
        count.older.newer = count.newer
    else:
        counts.oldest = count.newer
    if count.newer != NULL:
        count.newer.older = count.older
    else:
        counts.newest = count.older
    chained_drop(&counts.table, &count.chained)
    op_note(&counts.noted, count.logs, 1)
    free(count)


cdef LogCount* new_count(LogCounts* counts, int64_t ledger) noexcept nogil:
    cdef LogCount* count
    if counts.table.count >= counts.most and counts.oldest != NULL:
        finish(counts, counts.oldest)
    count = <LogCount*> calloc(1, sizeof(LogCount))
    if count == NULL:
        return NULL
    count.chained.ledger = ledger
    count.older = counts.newest
    if counts.newest != NULL:
        counts.newest.newer = count
    else:
        counts.oldest = count
    counts.newest = count
    chained_put(&counts.table, &count.chained)
    return count


cdef void log_counts_begin(LogCounts* counts, int64_t ledger) noexcept nogil:
    cdef LogCount* count = <LogCount*> chained_find(&counts.table, ledger)
    if count == NULL:
        count = new_count(counts, ledger)
    if count != NULL:
        count.logs += 1
        if count.logs == 2:
            bk_add(&counts.several, 1)


cdef void log_counts_end(LogCounts* counts, int64_t ledger) noexcept nogil:
    cdef LogCount* count = <LogCount*> chained_find(&counts.table, ledger)
    if count != NULL:
        finish(counts, count)
