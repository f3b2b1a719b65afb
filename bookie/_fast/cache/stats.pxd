"""What a store counts of its read cache: disk reads, what they brought, and whether anybody wanted it.

A few additions a disk read and a page that leaves the ring; two a slice taken; none per entry.
"""
from libc.stdint cimport int64_t, uint32_t, uint64_t

from bookie._fast.base.op_stats cimport OpStats
from bookie._fast.cache.pages cimport Page
from bookie._fast.cache.rereads cimport Rereads

cdef struct CacheCounts:
    # counted with relaxed atomics
    int64_t disk_reads
    int64_t disk_read_bytes
    int64_t readahead_entries            # that disk reads brought behind the first
    int64_t rereads                      # that disk reads brought, read from disk before (module cache.rereads)
    int64_t evicted_pages                # that left the ring
    int64_t evicted_untouched_pages      # of which nothing was taken
    int64_t evicted_entries
    int64_t evicted_bytes
    int64_t evicted_unused_entries       # that nobody took; a lower bound, see `page_unused`
    int64_t evicted_unused_bytes

cdef struct CacheStats:
    CacheCounts counts
    OpStats lookups                      # ns, shared: finding a span in the index
    OpStats last_lookups                 # ns, shared: finding a ledger's last entry there
    OpStats reads                        # ns, shared: reading it from the entry log
    OpStats batch_entries                # shared: entries that a disk read brought
    OpStats batch_bytes                  # shared: their bytes, with the lengths before them
    Rereads rereads

# A disk read brought this page; any thread.
cdef void note_read(CacheStats* stats, const Page* page, uint64_t bytes) noexcept nogil
# The page leaves the ring, under its ledger's shard; the bytes of records that nobody took.
cdef uint64_t note_evicted(CacheStats* stats, const Page* page) noexcept nogil
# Entries of a page that nobody took, and their bytes. Exact when each entry was taken once or readers took them in
# order; a lower bound when few entries were taken several times out of order. Under the shard.
cdef uint32_t page_unused(const Page* page, uint64_t* bytes) noexcept nogil
cdef dict cache_counts(const CacheStats* stats)
# As OpViews.
cdef dict cache_ops(const CacheStats* stats)
