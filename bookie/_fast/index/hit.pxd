"""What a look-up in the index finds."""
from libc.stdint cimport int64_t, uint32_t, uint64_t

cdef struct IndexHit:
    int64_t entry                # the entry found
    uint32_t log_id
    uint64_t offset              # of its length word
    uint32_t length              # of the entry, without the length word
    uint64_t span_bytes          # from `offset` on: what one pread may fetch, consecutive records of the ledger
    int64_t span_last            # the last entry id of these; none that lies in between is stored elsewhere
    uint32_t span_entries        # entries in the span
