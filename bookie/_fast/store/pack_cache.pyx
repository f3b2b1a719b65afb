"""Copies the halves to new memory, one after the other."""
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from bookie._fast.base.by_ledger cimport Chained
from bookie._fast.base.cursor cimport load_i64, load_u32
from bookie._fast.base.sync cimport bk_load, bk_store
from bookie._fast.base.types cimport LENGTH_PREFIX, OK, Status
from bookie._fast.cache.memory cimport region_unmap
from bookie._fast.cache.pages cimport Region, page_offset
from bookie._fast.cache.runs cimport (
    Found,
    LedgerRuns,
    Run,
    RunMap,
    RunPlace,
    map_find,
    map_free,
    map_init_like,
    runs_find,
    runs_next,
)
from bookie._fast.cache.write cimport Half, half_init, half_put, half_taken, page_for
from bookie._fast.store.stores cimport SHARDS

cdef enum:
    SLOT_BYTES = 4
    WON_LEAST = 64           # packing that gains less than this part of the half is not worth another attempt

cdef struct Packing:
    Half* half               # the new one
    RunMap* map
    LedgerRuns* newer        # the ledger's runs in the other half, if that is newer; else NULL
    uint64_t rest            # bytes of the ledger that are still to be packed


cdef uint64_t bytes_of(const LedgerRuns* ledger) noexcept nogil:
    """Return the bytes of the ledger's records and slots."""
    cdef RunPlace place = RunPlace(0, 0)
    cdef Run* run = runs_next(ledger, &place)
    cdef uint64_t size = 0
    while run != NULL:
        size += page_offset(run.page, run.lo + run.n) - page_offset(run.page, run.lo) + SLOT_BYTES * <uint64_t> run.n
        run = runs_next(ledger, &place)
    return size


cdef Status pack_record(Packing* packing, int64_t ledger, const uint8_t* record) noexcept nogil:
    cdef LedgerRuns* packed = map_find(packing.map, ledger)
    cdef uint32_t size = load_u32(record)
    cdef int64_t entry = load_i64(record + LENGTH_PREFIX + 8)
    cdef Found found
    cdef Status status = OK
    if packed != NULL:
        packed.page_bytes = page_for(packing.rest)
    found.run = NULL
    if packing.newer != NULL:
        runs_find(packing.newer, entry, &found)
    if found.run == NULL:
        status = half_put(packing.half, packing.map, ledger, entry, record + LENGTH_PREFIX, size, True)
    packing.rest -= LENGTH_PREFIX + size + SLOT_BYTES
    return status


cdef Status pack_ledger(Packing* packing, const LedgerRuns* ledger) noexcept nogil:
    cdef RunPlace place = RunPlace(0, 0)
    cdef Run* run = runs_next(ledger, &place)
    cdef LedgerRuns* packed
    cdef uint32_t slot
    cdef Status status = OK
    packing.rest = bytes_of(ledger)
    while run != NULL and status == OK:
        for slot in range(run.lo, run.lo + run.n):
            if status == OK:
                status = pack_record(packing, ledger.chained.ledger, run.page.data + page_offset(run.page, slot))
        run = runs_next(ledger, &place)
    packed = map_find(packing.map, ledger.chained.ledger)
    if packed != NULL:
        packed.page_bytes = 0        # pages for later adds begin small again
        packed.overrides = ledger.overrides
    return status


cdef Status pack_shard(Half* half, RunMap* map, const RunMap* old, const RunMap* newer) noexcept nogil:
    cdef Packing packing = Packing(half, map, NULL, 0)
    cdef uint32_t b
    cdef Chained* at
    cdef Status status = OK
    for b in range(old.table.size):
        at = old.table.buckets[b]
        while at != NULL and status == OK:
            if newer != NULL:
                packing.newer = map_find(newer, at.ledger)
            status = pack_ledger(&packing, <LedgerRuns*> at)
            at = at.next
    return status


cdef bint pack_half(Store* store, int64_t at) noexcept nogil:
    """Pack one half. Return False, with nothing changed, without memory or if the copy is larger than the original."""
    cdef Half* half = &store.halves[at]
    cdef Half old = half[0]
    cdef Region before = half.region[0]
    cdef RunMap maps[SHARDS]
    cdef RunMap* newer
    cdef bint is_older = at != bk_load(&store.active)
    cdef uint32_t i
    cdef uint32_t done = 0
    cdef bint made = half_init(half, half.region, before.size)
    cdef bint packed = made
    while packed and done < SHARDS:
        maps[done] = store.shards[done].halves[at]
        newer = &store.shards[done].halves[at ^ 1] if is_older else NULL
        packed = map_init_like(&store.shards[done].halves[at], &maps[done])
        if packed:
            packed = pack_shard(half, &store.shards[done].halves[at], &maps[done], newer) == OK
            done += 1
        else:
            store.shards[done].halves[at] = maps[done]
    packed = packed and half_taken(half) <= half_taken(&old)
    for i in range(done):
        if packed:
            map_free(&maps[i])
        else:
            map_free(&store.shards[i].halves[at])
            store.shards[i].halves[at] = maps[i]
    if packed:
        region_unmap(&before)
    elif made:
        region_unmap(half.region)
        half.region[0] = before
        half[0] = old
    return packed


cdef bint pack_cache(Store* store) noexcept nogil:
    cdef int64_t active = bk_load(&store.active)
    cdef int64_t before = half_taken(&store.halves[active])
    cdef uint64_t size = store.halves[active].region.size
    cdef bint apart = pack_half(store, active ^ 1)
    pack_half(store, active)
    if apart and half_taken(&store.halves[active ^ 1]) < half_taken(&store.halves[active]):
        active ^= 1              # no entry is in both halves, so neither is newer
        bk_store(&store.active, active)
    return half_taken(&store.halves[active]) + <int64_t> (size // WON_LEAST) <= before
