"""Pages of records and the directory of runs: which entries of a ledger lie in memory, and where.

A Page holds records `u32 length | entry` from its front and their u32 offsets (slots) from its back. A Run is a view
of consecutive slots of one page, ids ascending. The runs of a ledger are kept sorted and never overlap, so a batch
read over a run is a slice, found by arithmetic. Nothing here locks: the shard of the ledger (room `storage`) guards
its runs.
"""
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from bookie._fast.types cimport Status

cdef struct Region:
    # Memory that slices may point into. `pins` is atomic: a region is reused only when it is 0.
    int64_t pins
    uint8_t* base
    uint64_t size

cdef struct Page:
    Region* region
    uint8_t* data
    uint32_t used            # bytes of records at the front
    uint32_t capacity        # records and slots together
    uint32_t slots
    int64_t ledger
    Page* next               # of the same region; owner's use
    bint live                # False once its memory is about to be reused (read cache; guarded by the shard)
    int64_t follow           # the entry behind it, until it is read ahead; -1: none (guarded by the shard)
    # what reads took of it so far (guarded by the shard)
    uint32_t taken           # entries, each as often as it was taken
    uint32_t taken_from      # slots: all that was taken lies in [taken_from, taken_to)
    uint32_t taken_to        # 0: nothing was
    uint32_t setting         # of the readahead that brought it (room readahead)

cdef struct Run:
    int64_t first
    int64_t last
    Page* page
    uint32_t lo              # first slot
    uint32_t n               # slots

cdef struct LedgerRuns:
    int64_t ledger
    Run* runs
    uint32_t count
    uint32_t room
    Page* page               # the one being filled (write cache)
    uint32_t page_bytes      # size of the next page (write cache)
    bint overrides           # an entry at or below the ledger's last one was put here
    LedgerRuns* next

cdef struct RunMap:
    LedgerRuns** buckets
    uint32_t size            # power of two
    uint32_t count

cdef struct Found:
    # What `runs_find` tells of an entry.
    Run* run                 # NULL: not here
    uint32_t slot
    int64_t next_first       # first id of the next run above the entry; INT64_MAX if none

cdef inline uint32_t page_offset(const Page* page, uint32_t slot) noexcept nogil:
    """Where record `slot` starts; slot == slots answers the end of the last record."""
    if slot >= page.slots:
        return page.used
    return (<uint32_t*> (page.data + page.capacity))[-1 - <int64_t> slot]

cdef inline bint run_dense(const Run* run) noexcept nogil:
    return run.last - run.first == <int64_t> run.n - 1

# An empty page that belongs to no list.
cdef void page_init(Page* page, Region* region, uint8_t* data, uint32_t capacity, int64_t ledger) noexcept nogil
# Note that reads took these slots.
cdef void page_take(Page* page, uint32_t slot, uint32_t n) noexcept nogil
cdef bint page_append(Page* page, const uint8_t* entry, uint32_t size) noexcept nogil
cdef bint page_add_slot(Page* page, uint32_t offset) noexcept nogil

cdef bint map_init(RunMap* map) noexcept nogil
cdef void map_free(RunMap* map) noexcept nogil
cdef void map_clear(RunMap* map) noexcept nogil
cdef LedgerRuns* map_find(const RunMap* map, int64_t ledger) noexcept nogil
cdef LedgerRuns* map_get(RunMap* map, int64_t ledger) noexcept nogil
cdef void map_remove(RunMap* map, int64_t ledger) noexcept nogil

cdef void runs_find(const LedgerRuns* ledger, int64_t entry, Found* found) noexcept nogil
# Make [run.first, run.last] visible; what older runs held of those ids is cut out of them. False: no memory.
cdef bint runs_insert(LedgerRuns* ledger, const Run* run) noexcept nogil
cdef void runs_drop_page(LedgerRuns* ledger, const Page* page) noexcept nogil
# How many slots from `slot` on may be sent: ids consecutive, below `upper`, at most `count`, bytes within `size`
# (the first one always when `first_free`).
cdef uint32_t run_take(const Run* run, uint32_t slot, int64_t entry, int64_t upper, uint32_t count, uint64_t size,
                       bint first_free) noexcept nogil
