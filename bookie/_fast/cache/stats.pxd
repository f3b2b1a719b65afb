"""A store's counters of its read cache: disk reads, what they read, and how much of it was used.

They cost a few additions per disk read and per page evicted, two per slice taken, and nothing per entry.
"""
from libc.stdint cimport int64_t, uint32_t, uint64_t

from bookie._fast.base.op_stats cimport OpStats
from bookie._fast.cache.pages cimport Page
from bookie._fast.cache.rereads cimport Rereads

cdef struct CacheCounts:
    # Counted with relaxed atomics.
    int64_t disk_reads
    int64_t disk_read_bytes
    int64_t readahead_entries            # entries after the first one of a disk read
    int64_t rereads                      # entries that had been read from disk before (module cache.rereads)
    int64_t evicted_pages                # evicted from the ring
    int64_t evicted_untouched_pages      # of these, pages of which nothing was taken
    int64_t evicted_entries
    int64_t evicted_bytes
    int64_t evicted_unused_entries       # entries that no reader took; a lower bound, see `page_unused`
    int64_t evicted_unused_bytes

cdef struct CacheStats:
    CacheCounts counts
    OpStats lookups                      # ns, shared: finding an entry in the index
    OpStats last_lookups                 # ns, shared: finding a ledger's last entry in the index
    OpStats reads                        # ns, shared: reading from the entry log
    OpStats batch_entries                # shared: entries of a disk read
    OpStats batch_bytes                  # shared: their bytes, length words included
    Rereads rereads

# Count a disk read that filled this page. Any thread.
cdef void note_read(CacheStats* stats, const Page* page, uint64_t bytes) noexcept nogil
# Count the eviction of a page, under its ledger's shard; return the bytes of records that no reader took.
cdef uint64_t note_evicted(CacheStats* stats, const Page* page) noexcept nogil
# Return how many entries of a page no reader took, and their bytes. Exact if each entry was taken once or readers took
# them in order; a lower bound if a few entries were taken several times out of order. Under the shard.
cdef uint32_t page_unused(const Page* page, uint64_t* bytes) noexcept nogil
cdef dict cache_counts(const CacheStats* stats)
# Return OpViews.
cdef dict cache_ops(const CacheStats* stats)
