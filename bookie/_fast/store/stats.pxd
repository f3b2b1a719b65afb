"""The counters of a ledger directory. Any thread adds with relaxed atomics; Python reads."""
from libc.stdint cimport int64_t

from bookie._fast.base.op_stats cimport OpStats

cdef struct StoreStats:
    int64_t adds
    int64_t add_bytes
    int64_t write_cache_hits     # entries that reads took from it
    int64_t read_cache_hits      # entries that were in the read cache when they were requested
    int64_t read_cache_misses    # entries whose reader waited for the disk
    int64_t corrupt_records
    int64_t ledgers_closed       # ledgers whose end was announced
    int64_t short_batches        # a later entry failed, so only the entries before it were sent
    int64_t flushes
    int64_t flushes_put_off      # failed, and repeated later
    int64_t flushed_entries
    int64_t flushed_bytes
    int64_t carry_overs          # how often everything in memory was journaled again
    int64_t carried_bytes        # bytes of records journaled by them
    int64_t index_entries        # as of the last count by garbage collection, plus entries flushed since

cdef struct StoreOps:
    # Written by the thread that flushes the store; indexed by success. Times in nanoseconds.
    OpStats flush[2]
    OpStats entry_log[2]         # appending and syncing
    OpStats index[2]             # committing, ledger records included
    OpStats size[2]              # bytes of entries that a flush wrote
    OpStats readers              # until slow readers had released the half that a swap needs
