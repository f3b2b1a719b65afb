"""The directory of runs: which entries of a ledger lie in memory, and where.

A Run is a view of consecutive slots of one page, ids ascending. The runs of a ledger are kept sorted and never overlap,
so a batch read over a run is a slice, found by arithmetic. They lie in chunks of bounded size, so that what one run
costs does not grow with how many there are. Nothing here locks: the shard of the ledger (module `store.storage`) guards
its runs.
"""
from libc.stdint cimport int64_t, uint32_t, uint64_t

from bookie._fast.base.by_ledger cimport ByLedger, Chained
from bookie._fast.cache.pages cimport Page

cdef enum:
    CHUNK_RUNS = 128         # runs in a chunk, at most
    RUNS_FIRST = 4
    # Most that malloc takes: for a ledger with its first runs and its share of the buckets, and for each run more, in
    # arrays that double and chunks of which half is free.
    RUNS_BYTES = 384
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
    RunPlace found           # where the last look-up ended; there may be another run by now, or none
    Page* page               # the one being filled (write cache)
    uint32_t page_bytes      # size of the next page (write cache)
    bint overrides           # an entry at or below the ledger's last one was put here

cdef struct RunMap:
    ByLedger table

cdef struct Found:
    # What `runs_find` tells of an entry.
    Run* run                 # NULL: not here
    uint32_t slot
    int64_t next_first       # first id of the next run above the entry; INT64_MAX if none

cdef inline Run* runs_tail(const LedgerRuns* ledger) noexcept nogil:
    """The run with the highest ids; NULL if there is none."""
    if ledger.chunk_count == 0:
        return NULL
    return &ledger.chunks[ledger.chunk_count - 1].runs[ledger.chunks[ledger.chunk_count - 1].count - 1]

cdef inline Run* runs_next(const LedgerRuns* ledger, RunPlace* place) noexcept nogil:
    """The run at this place, which moves on; NULL behind the last one. A place of zeros is the beginning."""
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
cdef void map_free(RunMap* map) noexcept nogil
cdef void map_clear(RunMap* map) noexcept nogil
# Empty, with as many buckets as that one.
cdef bint map_init_like(RunMap* map, const RunMap* other) noexcept nogil
cdef LedgerRuns* map_find(const RunMap* map, int64_t ledger) noexcept nogil
cdef LedgerRuns* map_get(RunMap* map, int64_t ledger) noexcept nogil
cdef void map_remove(RunMap* map, int64_t ledger) noexcept nogil

cdef void runs_find(LedgerRuns* ledger, int64_t entry, Found* found) noexcept nogil
# Make [run.first, run.last] visible; what older runs held of those ids is cut out of them. False: no memory, and
# nothing changed.
cdef bint runs_insert(LedgerRuns* ledger, const Run* run) noexcept nogil
# Forget the runs of a page whose slots ascend.
cdef void runs_drop_page(LedgerRuns* ledger, const Page* page) noexcept nogil
# The last run that begins at or below the entry; NULL: none.
cdef Run* runs_below(LedgerRuns* ledger, int64_t entry) noexcept nogil
# How many slots from `slot` on may be sent: ids consecutive, below `upper`, at most `count`, bytes within `size`
# (the first one always when `first_free`).
cdef uint32_t run_take(const Run* run, uint32_t slot, int64_t entry, int64_t upper, uint32_t count, uint64_t size,
                       bint first_free) noexcept nogil
