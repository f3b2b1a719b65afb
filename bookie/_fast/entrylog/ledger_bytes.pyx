"""The bytes of each ledger in an entry log, collected for the ledgers map at the end of the file."""
from libc.stdint cimport uint64_t
from libc.stdlib cimport calloc, free, qsort
from libc.string cimport memset

from bookie._fast.base.types cimport Status

cdef enum:
    FIRST_CAPACITY = 64              # LEDGER_MAP_BYTES_LEAST in total


cdef void ledger_map_clear(LedgerMap* map) noexcept nogil:
    map.count = 0
    if map.slots != NULL:
        memset(map.slots, 0, map.capacity * sizeof(LedgerBytes))


cdef void ledger_map_free(LedgerMap* map) noexcept nogil:
    free(map.slots)
    map.slots = NULL
    map.capacity = 0
    map.count = 0


cdef LedgerBytes* find(LedgerMap* map, int64_t ledger) noexcept nogil:
    """Return the slot of `ledger`, or the empty slot where it belongs. At most half of the slots are used."""
    cdef uint64_t hash = <uint64_t> ledger * <uint64_t> 0x9E3779B97F4A7C15
    cdef size_t i = <size_t> (hash >> 32) & (map.capacity - 1)
    while map.slots[i].bytes != 0 and map.slots[i].ledger != ledger:
        i = (i + 1) & (map.capacity - 1)
    return &map.slots[i]


cdef Status ledger_map_reserve(LedgerMap* map) noexcept nogil:
    cdef LedgerMap larger
    cdef size_t i
    if (map.count + 1) * 2 <= map.capacity:
        return Status.OK
    larger.capacity = map.capacity * 2 if map.capacity > 0 else FIRST_CAPACITY
    larger.count = map.count
    larger.slots = <LedgerBytes*> calloc(larger.capacity, sizeof(LedgerBytes))
    if larger.slots == NULL:
        return Status.NO_MEMORY
    for i in range(map.capacity):
        if map.slots[i].bytes != 0:
            find(&larger, map.slots[i].ledger)[0] = map.slots[i]
    free(map.slots)
    map[0] = larger
    return Status.OK


cdef void ledger_map_add(LedgerMap* map, int64_t ledger, uint64_t bytes) noexcept nogil:
    cdef LedgerBytes* slot = find(map, ledger)
    if slot.bytes == 0:
        slot.ledger = ledger
        map.count += 1
    slot.bytes += bytes


cdef int by_ledger(const void* a, const void* b) noexcept nogil:
    cdef int64_t x = (<const LedgerBytes*> a).ledger
    cdef int64_t y = (<const LedgerBytes*> b).ledger
    return (x > y) - (x < y)


cdef LedgerBytes* ledger_map_sorted(LedgerMap* map) noexcept nogil:
    cdef size_t i
    cdef size_t used = 0
    for i in range(map.capacity):
        if map.slots[i].bytes != 0:
            map.slots[used] = map.slots[i]
            used += 1
    if used > 1:
        qsort(map.slots, used, sizeof(LedgerBytes), by_ledger)
    return map.slots


def tally(appends):
    """Add up (ledger, bytes) pairs and return the sums by ledger, as the entry log writer does. For tests."""
    cdef LedgerMap map
    cdef LedgerBytes* sorted_slots
    memset(&map, 0, sizeof(map))
    try:
        for ledger, size in appends:
            if ledger_map_reserve(&map) != Status.OK:
                raise MemoryError("no memory for another ledger")
            ledger_map_add(&map, ledger, size)
        sorted_slots = ledger_map_sorted(&map)
        return [(sorted_slots[i].ledger, sorted_slots[i].bytes) for i in range(map.count)]
    finally:
        ledger_map_free(&map)
