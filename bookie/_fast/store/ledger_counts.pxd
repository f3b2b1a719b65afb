"""How many ledgers a directory holds, how many it may hold, and what each takes. State only."""
from libc.stdint cimport int64_t

cdef enum:
    # Most that malloc takes for one, with its share of the buckets.
    LEDGER_BYTES_MOST = 320      # with a key and an explicit LAC of the usual sizes
    FENCE_BYTES_MOST = 64
    FENCES_CLOCK = -1            # in the index, in the place of a ledger: the time that fences are aged by

cdef struct LedgerCounts:
    # Of all shards of a store.
    int64_t known                # atomic
    int64_t known_most           # of new ones of their writers; recoveries and fences may add an eighth
    int64_t fences               # atomic
    int64_t fences_most          # deletions of fenced ledgers wait while there are as many
    # the time that fences are aged by (module store.gc.kept_fences)
    int64_t fences_ms            # how long bookies had run on this store before this process, as the index tells
    int64_t fences_since_ns      # when this process began to measure on
    int64_t fences_stored_ms     # of that time, what the index tells
