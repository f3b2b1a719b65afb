"""How many ledgers a directory holds, how many it may hold, and how much memory each takes. State only."""
from libc.stdint cimport int64_t

cdef enum:
    # The most memory that malloc takes for one, including its share of the buckets.
    LEDGER_BYTES_MOST = 320      # with a key and an explicit LAC of the usual sizes
    FENCE_BYTES_MOST = 64
    FENCES_CLOCK = -1            # the ledger id under which the index keeps the time by which fences age

cdef struct LedgerCounts:
    # Of all shards of a store.
    int64_t known                # atomic
    int64_t known_most           # limit for new ledgers of writers; recoveries and fences may add an eighth
    int64_t fences               # atomic
    int64_t fences_most          # deletions of fenced ledgers wait while there are this many
    # The time by which fences age (module store.gc.kept_fences).
    int64_t fences_ms            # how long bookies had run on this store before this process, from the index
    int64_t fences_since_ns      # when this process began to measure
    int64_t fences_stored_ms     # the time that is stored in the index
