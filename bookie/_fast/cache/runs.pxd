"""The directory of runs: which entries of a ledger are in memory, and where.

A Run is a view of consecutive slots of one page, with ascending ids. The runs of a ledger are sorted and never
overlap, so a batch read over a run is a slice. They are kept in chunks of bounded size, so that the cost of an
operation does not grow with their number. No locks: the ledger's shard (module `store.stores`) guards its runs.
"""
from libc.stdint cimport int64_t, uint32_t, uint64_t

from bookie._fast.base.by_ledger cimport ByLedger, Chained
from bookie._fast.base.slabs cimport Slabs
from bookie._fast.cache.pages cimport Page

cdef enum:
    CHUNK_RUNS = 128         # the most runs in a chunk
    RUNS_FIRST = 4
    # The most memory that malloc takes: for a ledger with its first runs (224 bytes) and its share of the buckets (24
    # at most), beside unused items of a slab; and for each further run: arrays double, chunks may be half empty.
    RUNS_BYTES = 256
    RUN_BYTES = 80

cdef struct Run:
    int64_t first
    int64_t last
    Page* page
    uint32_t lo              # first slot
    uint32_t n               # slots

cdef struct Chunk:
    int64_t first            # of its first run
    Run* runs
    uint32_t count           # never 0
    uint32_t room

cdef struct RunPlace:
    uint32_t chunk
    uint32_t at

cdef struct LedgerRuns:
    Chained chained
    Chunk* chunks            # ascending
    uint32_t chunk_count
    uint32_t chunk_room
    uint32_t count           # runs of all chunks
    RunPlace found           # where the last look-up ended; by now another run may be there, or none
    Page* page               # the page being filled (write cache)
    uint32_t page_bytes      # size of the next page (write cache)
    bint overrides           # an entry at or below the ledger's last one was put here
    Chunk chunk_own              # most ledgers need no other one, and no more runs, and so one allocation
    Run[RUNS_FIRST] runs_own

cdef struct RunMap:
    ByLedger table
    Slabs slabs              # with map_init_slabs, the ledgers' memory, which is returned when the map is cleared

cdef struct Found:
    Run* run                 # NULL if the entry is not here
    uint32_t slot
    int64_t next_first       # first id of the next run above the entry; INT64_MAX if there is none

cdef inline Run* runs_tail(const LedgerRuns* ledger) noexcept nogil:
    """Return the run with the highest ids, or NULL."""
    cdef uint32_t chunks = ledger.chunk_count
    return &ledger.chunks[chunks - 1].runs[ledger.chunks[chunks - 1].count - 1] if chunks else NULL

cdef inline Run* runs_next(const LedgerRuns* ledger, RunPlace* place) noexcept nogil:
    """Return the run at this place, which moves to the next one; NULL after the last. Zeros are the first place."""
    cdef Run* run
    if place.chunk >= ledger.chunk_count:
        return NULL
    run = &ledger.chunks[place.chunk].runs[place.at]
    place.at += 1
    if place.at == ledger.chunks[place.chunk].count:
        place.chunk += 1
        place.at = 0
    return run

cdef inline bint run_dense(const Run* run) noexcept nogil:
    return run.last - run.first == <int64_t> run.n - 1

cdef bint map_init(RunMap* map) noexcept nogil
cdef bint map_init_slabs(RunMap* map) noexcept nogil
cdef void map_free(RunMap* map) noexcept nogil
cdef void map_clear(RunMap* map) noexcept nogil
# Make an empty map of the same kind and with as many buckets as `other`.
cdef bint map_init_like(RunMap* map, const RunMap* other) noexcept nogil
cdef LedgerRuns* map_find(const RunMap* map, int64_t ledger) noexcept nogil
cdef LedgerRuns* map_get(RunMap* map, int64_t ledger) noexcept nogil
cdef void map_remove(RunMap* map, int64_t ledger) noexcept nogil

cdef void runs_find(LedgerRuns* ledger, int64_t entry, Found* found) noexcept nogil
# Insert a run, and cut its ids out of older runs. Return False without memory, with nothing changed.
cdef bint runs_insert(LedgerRuns* ledger, const Run* run) noexcept nogil
# Remove the runs of a page whose slots ascend.
cdef void runs_drop_page(LedgerRuns* ledger, const Page* page) noexcept nogil
# Return the last run that begins at or below the entry, or NULL.
cdef Run* runs_below(LedgerRuns* ledger, int64_t entry) noexcept nogil
# Return how many slots from `slot` on may be sent: consecutive ids below `upper`, at most `count`, at most `size`
# bytes (but always the first slot, if `first_free`).
cdef uint32_t run_take(const Run* run, uint32_t slot, int64_t entry, int64_t upper, uint32_t count, uint64_t size,
                       bint first_free) noexcept nogil
