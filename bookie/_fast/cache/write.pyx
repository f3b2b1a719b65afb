"""Halves of the write cache: memory, pages, puts."""
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from bookie._fast.base.bounds cimport ids_hold
from bookie._fast.base.cursor cimport load_i64
from bookie._fast.base.sync cimport bk_add_relaxed, bk_load, bk_store
from bookie._fast.base.types cimport BAD_REQUEST, FULL, LENGTH_PREFIX, NO_MEMORY, OK, TOO_MANY_REQUESTS
from bookie._fast.cache.memory cimport region_map, region_unmap
from bookie._fast.cache.pages cimport Page, page_append, page_init, page_offset
from bookie._fast.cache.runs cimport (
    RUNS_BYTES,
    RUNS_FIRST,
    RUN_BYTES,
    Found,
    LedgerRuns,
    Run,
    RunPlace,
    map_clear,
    map_find,
    map_free,
    map_get,
    map_init_slabs,
    map_remove,
    run_take,
    runs_drop_page,
    runs_find,
    runs_insert,
    runs_next,
    runs_tail,
)

cdef enum:
    PAGE_FIRST = 512         # and at least one entry: the first page of most of many ledgers is the only one
    PAGE_MOST = 1 << 20
    ALIGN = 64
    RUNS_MOST = 16384        # per ledger and half: limits the cost of an entry that arrives out of order


cdef bint half_init(Half* half, Region* region, uint64_t size) noexcept nogil:
    if not region_map(region, size):
        return False
    region.of_write_cache = True
    bk_store(&half.used, 0)
    half.region = region
    half_reset(half)
    return True


cdef bint half_resize(Half* half, uint64_t size) noexcept nogil:
    cdef Region before = half.region[0]
    if not half_init(half, half.region, size):
        return False
    region_unmap(&before)
    return True


cdef void half_reset(Half* half) noexcept nogil:
    half.region.touched = max(half.region.touched, <uint64_t> bk_load(&half.used))
    bk_store(&half.region.wanted, 0)
    half.entries = 0
    half.bytes = 0
    bk_store(&half.map_bytes, 0)
    bk_store(&half.used, 0)


cdef inline uint64_t aligned(uint64_t size) noexcept nogil:
    return (size + ALIGN - 1) & ~<uint64_t> (ALIGN - 1)


cdef uint32_t page_for(uint64_t size) noexcept nogil:
    return <uint32_t> min(aligned(aligned(sizeof(Page)) + size + 4), <uint64_t> PAGE_MOST)


cdef Page* new_page(Half* half, LedgerRuns* ledger, uint32_t record) noexcept nogil:
    """Allocate a page with room for at least `record` bytes; NULL if the half is full."""
    cdef uint64_t size = ledger.page_bytes if ledger.page_bytes else PAGE_FIRST
    cdef uint64_t head = aligned(sizeof(Page))
    cdef uint64_t least = aligned(head + record + 4)
    cdef int64_t end
    cdef Page* page
    if size < least or (bk_load(&half.used) == 0 and half_taken(half) + <int64_t> size > <int64_t> half.region.size):
        size = least             # also if it is the only page of a half that is hardly larger
    if half_taken(half) + <int64_t> size > <int64_t> half.region.size:
        return NULL
    end = bk_add_relaxed(&half.used, <int64_t> size)
    if end > <int64_t> half.region.size:
        bk_add_relaxed(&half.used, -<int64_t> size)
        return NULL
    page = <Page*> (half.region.base + end - size)
    page_init(page, half.region, <uint8_t*> page + head, <uint32_t> ((size - head) & ~<uint64_t> 3),
              ledger.chained.ledger)
    if size * 2 <= PAGE_MOST:
        ledger.page_bytes = <uint32_t> (size * 2)
    else:
        ledger.page_bytes = PAGE_MOST
    return page


cdef Status half_put(Half* half, RunMap* map, int64_t ledger, int64_t entry, const uint8_t* data, uint32_t size,
                     bint is_tail) noexcept nogil:
    cdef LedgerRuns* runs
    cdef Run* tail
    cdef Page* page
    cdef Run fresh
    cdef uint32_t slot, before
    if not ids_hold(ledger, entry):
        return BAD_REQUEST           # a flush could not index it
    runs = map_find(map, ledger)
    if runs == NULL:
        if half_taken(half) > <int64_t> half.region.size - RUNS_BYTES:
            return FULL
        runs = map_get(map, ledger)
        if runs == NULL:
            return NO_MEMORY
        bk_add_relaxed(&half.map_bytes, RUNS_BYTES)
    if runs.count >= RUNS_MOST:
        return TOO_MANY_REQUESTS
    page = runs.page
    if page == NULL or not page_append(page, data, size):
        page = new_page(half, runs, LENGTH_PREFIX + size)
        if page == NULL:
            return FULL
        page_append(page, data, size)
        runs.page = page
    slot = page.slots - 1
    tail = runs_tail(runs)
    if tail != NULL and entry > tail.last and tail.page == page and tail.lo + tail.n == slot:
        tail.last = entry
        tail.n += 1
    else:
        fresh.first = entry
        fresh.last = entry
        fresh.page = page
        fresh.lo = slot
        fresh.n = 1
        if runs.count >= RUNS_FIRST and half_taken(half) > <int64_t> half.region.size - 2 * RUN_BYTES:
            return FULL
        before = runs.count
        if not runs_insert(runs, &fresh):
            return NO_MEMORY
        if runs.count > before:
            bk_add_relaxed(&half.map_bytes, <int64_t> (runs.count - before) * RUN_BYTES)
    if not is_tail:
        runs.overrides = True
    bk_add_relaxed(&half.entries, 1)
    bk_add_relaxed(&half.bytes, LENGTH_PREFIX + size)
    return OK


cdef class WriteHalf:
    """One half with the runs of its ledgers, for tests; one thread. The data path keeps the runs in its shards."""

    def __cinit__(self, size: int):
        if not half_init(&self.half, &self.region, size) or not map_init_slabs(&self.map):
            raise MemoryError

    def put(self, const uint8_t[::1] entry not None, *, tail: bool = False) -> bool:
        """Store an entry under the ids in it; False if there is no space. ValueError for other refusals."""
        cdef Status status = half_put(&self.half, &self.map, load_i64(&entry[0]), load_i64(&entry[8]), &entry[0],
                                      <uint32_t> entry.shape[0], tail)
        if status != OK and status != FULL:
            raise ValueError(f"the half refused the entry with status {<int> status}")
        return status == OK

    def runs(self, int64_t ledger) -> list[tuple[int, int, int]]:
        """Return (first, last, entries) of each run, in order."""
        cdef LedgerRuns* runs = map_find(&self.map, ledger)
        cdef RunPlace place = RunPlace(0, 0)
        cdef Run* run
        found = []
        run = runs_next(runs, &place) if runs != NULL else NULL
        while run != NULL:
            found.append((run.first, run.last, run.n))
            run = runs_next(runs, &place)
        return found

    def overrides(self, int64_t ledger) -> bool:
        """Return whether an entry was put with `tail` False."""
        cdef LedgerRuns* runs = map_find(&self.map, ledger)
        return runs != NULL and runs.overrides

    def find(self, int64_t ledger, int64_t entry) -> tuple[bool, int]:
        """Return whether the entry is here, and if not, the first id after it that is (2**63 - 1 if there is none)."""
        cdef Found found
        runs_find(map_find(&self.map, ledger), entry, &found)
        return found.run != NULL, found.next_first

    def take(self, int64_t ledger, int64_t entry, *, int64_t upper, uint32_t count, uint64_t size,
             bint first_free) -> bytes:
        """Return records of a run from `entry` on: ids below `upper`, at most `count`, at most `size` bytes."""
        cdef Found found
        cdef uint32_t n, start
        runs_find(map_find(&self.map, ledger), entry, &found)
        if found.run == NULL:
            return b""
        n = run_take(found.run, found.slot, entry, upper, count, size, first_free)
        start = page_offset(found.run.page, found.slot)
        return (<const char*> found.run.page.data + start)[:page_offset(found.run.page, found.slot + n) - start]

    def drop_first_page(self, int64_t ledger) -> None:
        """Remove the runs that view the page of the ledger's first run."""
        cdef LedgerRuns* runs = map_find(&self.map, ledger)
        if runs != NULL and runs.count:
            runs_drop_page(runs, runs.chunks[0].runs[0].page)

    def remove(self, int64_t ledger) -> None:
        map_remove(&self.map, ledger)

    def clear(self) -> None:
        """Clear everything, as after a flush."""
        map_clear(&self.map)
        half_reset(&self.half)

    def stats(self) -> dict[str, int]:
        return {"used": bk_load(&self.half.used), "entries": bk_load(&self.half.entries),
                "bytes": bk_load(&self.half.bytes), "map_bytes": bk_load(&self.half.map_bytes),
                "ledgers": self.map.table.count}

    def __dealloc__(self):
        map_free(&self.map)
        region_unmap(&self.region)
