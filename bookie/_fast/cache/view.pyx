"""Pages of one ledger that are added, overlap and are dropped, as in the read cache; for tests. One thread."""
cimport cython
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc

from bookie._fast.base.cursor cimport store_i64
from bookie._fast.base.types cimport LENGTH_PREFIX
from bookie._fast.cache.pages cimport Page, page_append, page_init
from bookie._fast.cache.runs cimport (
    Found,
    LedgerRuns,
    Run,
    RunMap,
    RunPlace,
    map_find,
    map_free,
    map_get,
    map_init,
    runs_drop_page,
    runs_find,
    runs_insert,
    runs_next,
)

cdef enum:
    ENTRY = 16               # bytes: its ids


@cython.no_gc_clear
cdef class LedgerPages:
    """The runs of one ledger, and the pages that they view."""
    cdef RunMap map
    cdef dict pages

    def __cinit__(self):
        self.pages = {}
        if not map_init(&self.map):
            raise MemoryError

    def show(self, list ids) -> int:
        """Add a page with entries of these ids, ascending, and insert its run; return the page's name."""
        cdef uint32_t record = LENGTH_PREFIX + ENTRY
        cdef uint32_t capacity = <uint32_t> len(ids) * (record + 4)
        cdef Page* page = <Page*> malloc(sizeof(Page) + capacity)
        cdef uint8_t[ENTRY] entry
        cdef Run run
        if page == NULL:
            raise MemoryError
        page_init(page, NULL, <uint8_t*> (page + 1), capacity, 1)
        for id in ids:
            store_i64(entry, 1)
            store_i64(entry + 8, id)
            page_append(page, entry, ENTRY)
        run = Run(ids[0], ids[len(ids) - 1], page, 0, page.slots)
        if not runs_insert(map_get(&self.map, 1), &run):
            raise MemoryError
        self.pages[<uint64_t> page] = len(ids)
        return <uint64_t> page

    def drop(self, uint64_t page) -> None:
        """Remove the runs of a page and free it."""
        runs_drop_page(map_get(&self.map, 1), <Page*> page)
        del self.pages[page]
        free(<Page*> page)

    def find(self, int64_t entry) -> tuple[int, int]:
        """Return (page that has the entry, entry), or (0, id of the next entry)."""
        cdef Found found
        runs_find(map_find(&self.map, 1), entry, &found)
        if found.run == NULL:
            return 0, found.next_first
        return <uint64_t> found.run.page, entry

    def runs(self) -> list[tuple[int, int, int]]:
        """Return (first, last, entries) of each run, in order."""
        cdef LedgerRuns* ledger = map_get(&self.map, 1)
        cdef RunPlace place = RunPlace(0, 0)
        cdef Run* run = runs_next(ledger, &place)
        found = []
        while run != NULL:
            found.append((run.first, run.last, run.n))
            run = runs_next(ledger, &place)
        assert len(found) == ledger.count
        return found

    def chunks(self) -> list[int]:
        """Return the number of runs in each chunk."""
        cdef LedgerRuns* ledger = map_get(&self.map, 1)
        return [ledger.chunks[i].count for i in range(ledger.chunk_count)]

    def __dealloc__(self):
        map_free(&self.map)
        for page in self.pages:
            free(<Page*> <uint64_t> page)
