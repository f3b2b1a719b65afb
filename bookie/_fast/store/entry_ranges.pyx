"""Maximal ranges of a ledger's entries."""
from libc.stdint cimport int64_t, uint32_t
from libc.stdlib cimport free, qsort, realloc
from libc.string cimport memset

from bookie._fast.base.cursor cimport load_i64
from bookie._fast.base.sync cimport pthread_mutex_lock, pthread_mutex_unlock
from bookie._fast.base.types cimport IO_ERROR, LENGTH_PREFIX, NO_LEDGER, NO_MEMORY, OK
from bookie._fast.cache.pages cimport page_offset
from bookie._fast.cache.runs cimport LedgerRuns, Run, RunPlace, map_find, run_dense, runs_next
from bookie._fast.index.codec cimport IndexRun
from bookie._fast.index.location cimport IndexReader, index_each_run, index_reader, index_reader_free
from bookie._fast.store.ledger_table cimport ledger_find
from bookie._fast.store.storage cimport StorageEngine
from bookie._fast.store.stores cimport Shard, Store, shard_of, store_of

cdef enum:
    HALVES = 2
    ENTRY_ID_AT = LENGTH_PREFIX + 8  # in a record


cdef bint add(EntryRanges* ranges, int64_t first, int64_t last) noexcept nogil:
    """Append a range, or extend the last one. Return False if there is no memory."""
    cdef size_t room
    cdef EntryRange* grown
    if ranges.count and ranges.items[ranges.count - 1].last == first - 1:
        ranges.items[ranges.count - 1].last = last
        return True
    if ranges.count == ranges.room:
        room = ranges.room * 2 if ranges.room else 64
        grown = <EntryRange*> realloc(ranges.items, room * sizeof(EntryRange))
        if grown == NULL:
            return False
        ranges.items = grown
        ranges.room = room
    ranges.items[ranges.count].first = first
    ranges.items[ranges.count].last = last
    ranges.count += 1
    return True


cdef bint add_run(EntryRanges* ranges, const Run* run) noexcept nogil:
    """Add a run of a page in memory; if it has gaps, its ids are read from the records."""
    cdef uint32_t i
    cdef int64_t entry
    if run_dense(run):
        return add(ranges, run.first, run.last)
    for i in range(run.lo, run.lo + run.n):
        entry = load_i64(run.page.data + page_offset(run.page, i) + ENTRY_ID_AT)
        if not add(ranges, entry, entry):
            return False
    return True


cdef bint add_half(EntryRanges* ranges, const LedgerRuns* runs) noexcept nogil:
    cdef RunPlace place = RunPlace(0, 0)
    cdef Run* run
    if runs == NULL:
        return True
    run = runs_next(runs, &place)
    while run != NULL:
        if not add_run(ranges, run):
            return False
        run = runs_next(runs, &place)
    return True


cdef Status add_stored(void* context, const IndexRun* run) noexcept nogil:
    """Add a run of the index, where a length of 0 is a gap."""
    cdef EntryRanges* ranges = <EntryRanges*> context
    cdef uint32_t start = 0
    cdef uint32_t end
    while start < run.count:
        if run.lengths[start] == 0:
            start += 1
            continue
        end = start + 1
        while end < run.count and run.lengths[end]:
            end += 1
        if not add(ranges, run.first + start, run.first + end - 1):
            return NO_MEMORY
        start = end
    return OK


cdef int by_first(const void* a, const void* b) noexcept nogil:
    cdef int64_t one = (<const EntryRange*> a).first
    cdef int64_t other = (<const EntryRange*> b).first
    return (one > other) - (one < other)


cdef void merge(EntryRanges* ranges) noexcept nogil:
    cdef size_t i
    cdef size_t kept = 0
    cdef EntryRange* items = ranges.items
    if ranges.count == 0:
        return
    qsort(items, ranges.count, sizeof(EntryRange), by_first)
    for i in range(1, ranges.count):
        if items[i].first - 1 <= items[kept].last:
            if items[i].last > items[kept].last:
                items[kept].last = items[i].last
        else:
            kept += 1
            items[kept] = items[i]
    ranges.count = kept + 1


cdef Status ranges_collect(Storage* stores, int64_t ledger, EntryRanges* ranges) noexcept nogil:
    cdef Store* store = store_of(stores, ledger)
    cdef Shard* shard = shard_of(store, ledger)
    cdef IndexReader* reader
    cdef Status status = OK
    cdef int i
    pthread_mutex_lock(&shard.lock)
    if ledger_find(&shard.ledgers, ledger) == NULL:
        status = NO_LEDGER
    for i in range(HALVES):
        if status == OK and not add_half(ranges, map_find(&shard.halves[i], ledger)):
            status = NO_MEMORY
    pthread_mutex_unlock(&shard.lock)
    if status != OK:
        return status
    # Memory comes before the index, so that what a flush moves in between is seen at least once.
    reader = index_reader(store.index)
    if reader == NULL:
        return IO_ERROR
    status = index_each_run(reader, ledger, add_stored, ranges)
    index_reader_free(reader)
    if status == OK:
        merge(ranges)
    return status


def entry_ranges(StorageEngine stores, int64_t ledger):
    """Return (first, last) of each maximal range of stored entries, ascending; None if the ledger is unknown here.

    OSError if the index cannot be read, MemoryError.
    """
    cdef EntryRanges ranges
    cdef Status status
    memset(&ranges, 0, sizeof(ranges))
    try:
        with nogil:
            status = ranges_collect(stores.stores, ledger, &ranges)
        if status == NO_LEDGER:
            return None
        if status == NO_MEMORY:
            raise MemoryError
        if status != OK:
            raise OSError(f"the location index of ledger {ledger} cannot be read")
        return [(ranges.items[i].first, ranges.items[i].last) for i in range(ranges.count)]
    finally:
        free(ranges.items)
