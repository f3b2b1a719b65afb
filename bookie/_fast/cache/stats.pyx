"""Counting how useful the read cache is."""
from libc.stdint cimport uint32_t, uint64_t

from bookie._fast.base.op_stats cimport op_note_shared, op_view
from bookie._fast.base.sync cimport bk_add_relaxed, bk_load
from bookie._fast.cache.pages cimport Page, page_offset
from bookie._fast.cache.rereads cimport rereads_note


cdef void note_read(CacheStats* stats, const Page* page, uint64_t bytes) noexcept nogil:
    cdef CacheCounts* counts = &stats.counts
    bk_add_relaxed(&counts.disk_read_bytes, <int64_t> bytes)
    op_note_shared(&stats.batch_entries, page.slots)
    op_note_shared(&stats.batch_bytes, page.used)
    bk_add_relaxed(&counts.readahead_entries, page.slots - 1)
    bk_add_relaxed(&counts.rereads, rereads_note(&stats.rereads, page))


cdef uint32_t page_unused(const Page* page, uint64_t* bytes) noexcept nogil:
    cdef uint32_t spread, used
    cdef uint64_t touched
    if page.taken_to == 0:
        bytes[0] = page.used
        return page.slots
    spread = page.taken_to - page.taken_from
    used = min(page.taken, spread)
    touched = page_offset(page, page.taken_to) - page_offset(page, page.taken_from)
    bytes[0] = page.used - touched * used // spread
    return page.slots - used


cdef uint64_t note_evicted(CacheStats* stats, const Page* page) noexcept nogil:
    cdef CacheCounts* counts = &stats.counts
    cdef uint64_t unused_bytes
    cdef uint32_t unused = page_unused(page, &unused_bytes)
    bk_add_relaxed(&counts.evicted_pages, 1)
    bk_add_relaxed(&counts.evicted_untouched_pages, page.taken_to == 0)
    bk_add_relaxed(&counts.evicted_entries, page.slots)
    bk_add_relaxed(&counts.evicted_bytes, page.used)
    bk_add_relaxed(&counts.evicted_unused_entries, unused)
    bk_add_relaxed(&counts.evicted_unused_bytes, <int64_t> unused_bytes)
    return unused_bytes


cdef dict cache_counts(const CacheStats* stats):
    return {
        **(<dict> stats.counts),
        "readahead_batch_count": bk_load(&stats.batch_entries.sum),
        "readahead_batch_size": bk_load(&stats.batch_bytes.sum),
    }


cdef dict cache_ops(const CacheStats* stats):
    return {
        "lookup_entry_location": op_view(&stats.lookups),
        "lookup_last_entry": op_view(&stats.last_lookups),
        "read_entrylog": op_view(&stats.reads),
        "readahead_batch_count": op_view(&stats.batch_entries),
        "readahead_batch_size": op_view(&stats.batch_bytes),
    }
