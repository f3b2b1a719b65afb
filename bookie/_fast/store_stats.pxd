"""What a ledger directory counts. Any thread adds, with relaxed atomics; Python reads."""
from libc.stdint cimport int64_t

cdef struct StoreStats:
    int64_t adds
    int64_t add_bytes
    int64_t write_cache_hits     # entries that reads took of it
    int64_t read_cache_hits      # entries that were in the read cache when they were asked for
    int64_t read_cache_misses    # entries whose reader waited for the disk
    int64_t corrupt_records
    int64_t ledgers_closed       # ledgers whose end was announced
    int64_t short_batches        # a later entry failed, the prefix was answered
    int64_t flushes
    int64_t flushed_entries
    int64_t flushed_bytes
    int64_t flush_ns
