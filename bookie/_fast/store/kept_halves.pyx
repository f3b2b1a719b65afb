"""The list of kept halves. Its order is that of the flushes; it changes shard by shard, under the shard's lock."""
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.string cimport memmove

from bookie._fast.base.fatal cimport fatal_is_set
from bookie._fast.base.planted cimport PLANT_HALF_REUSED, bk_planted
from bookie._fast.base.sync cimport bk_load, bk_store, pthread_mutex_lock, pthread_mutex_unlock
from bookie._fast.cache.memory cimport (
    HUGE_BYTES,
    HUGE_LEAST,
    region_cut,
    region_map,
    region_pass_on,
    region_unmap,
)
from bookie._fast.cache.pages cimport Region
from bookie._fast.cache.runs cimport RunMap, map_clear, map_free, map_init_like, map_init_slabs
from bookie._fast.cache.write cimport Half, half_init, half_reset
from bookie._fast.store.kept_list cimport KEPT_MOST, REGIONS_MOST
from bookie._fast.store.storage cimport stores_want_back
from bookie._fast.store.stores cimport SHARDS, Shard

cdef extern from "<unistd.h>" nogil:
    int usleep(unsigned int) noexcept

cdef enum:
    TICK_US = 500                # between two looks at the pins
    WASTE_SHARE = 4              # memory that a kept half does not use is much if it is more than this part of it


cdef uint64_t memory_of(const Half* half) noexcept nogil:
    """Return the bytes of memory that it takes: of pages, at present or ever since it was mapped, and of runs."""
    cdef uint64_t used = <uint64_t> bk_load(&half.used)
    if half.region.size >= HUGE_LEAST:
        used = min((used + HUGE_BYTES - 1) & ~<uint64_t> (HUGE_BYTES - 1), half.region.size)
    return max(used, half.region.touched) + <uint64_t> bk_load(&half.map_bytes)


cdef uint64_t kept_memory(const Store* store) noexcept nogil:
    cdef uint64_t size = 0
    cdef uint32_t i
    for i in range(store.kept.count):
        size += memory_of(&store.kept.halves[i])
    return size


cdef bint too_many(const Store* store, const Half* beside) noexcept nogil:
    """Return whether the kept halves must become fewer, so that there is room for this one."""
    cdef uint64_t size = kept_memory(store) + memory_of(beside)
    return store.kept.count and (store.kept.count == KEPT_MOST or size > <uint64_t> bk_load(&store.kept.bytes_max))


cdef void take_shard(Shard* shard, int64_t half) noexcept nogil:
    cdef RunMap empty
    cdef RunMap unused
    cdef bint fits = map_init_like(&empty, &shard.halves[half])
    pthread_mutex_lock(&shard.lock)
    unused = shard.kept.maps[KEPT_MOST - 1]           # an empty one
    memmove(&shard.kept.maps[1], &shard.kept.maps[0], (KEPT_MOST - 1) * sizeof(RunMap))
    shard.kept.maps[0] = shard.halves[half]
    shard.halves[half] = empty if fits else unused
    shard.kept.count += 1
    pthread_mutex_unlock(&shard.lock)
    if fits:
        map_free(&unused)


cdef void hide(Shard* shard) noexcept nogil:
    """Remove everything from a shard's kept halves, which stay in the list for their memory."""
    cdef uint32_t i
    pthread_mutex_lock(&shard.lock)
    for i in range(shard.kept.count):
        map_clear(&shard.kept.maps[i])
    pthread_mutex_unlock(&shard.lock)


cdef bint kept_take(Store* store, int64_t half) noexcept nogil:
    cdef Half* flushed = &store.halves[half]
    cdef uint32_t i
    if flushed.entries == 0:
        return False
    if bk_load(&store.kept.bytes_max) == 0 or bk_load(&store.lagging) or store.kept.count == KEPT_MOST:
        for i in range(SHARDS if store.kept.count else 0):
            hide(&store.shards[i])       # this half may have newer copies of what they hold
        return False
    for i in range(SHARDS):
        take_shard(&store.shards[i], half)
    memmove(&store.kept.halves[1], &store.kept.halves[0], (KEPT_MOST - 1) * sizeof(Half))
    store.kept.halves[0] = flushed[0]
    store.kept.count += 1
    half_reset(flushed)
    flushed.region = NULL
    bk_store(&store.kept.bytes, <int64_t> kept_memory(store))
    return True


cdef void drop_shard(Shard* shard) noexcept nogil:
    """Remove the oldest kept half from a shard. Adds do not wait while its runs are freed."""
    cdef RunMap empty
    cdef RunMap old
    cdef bint taken = map_init_slabs(&empty)
    pthread_mutex_lock(&shard.lock)
    shard.kept.count -= 1
    if taken:
        old = shard.kept.maps[shard.kept.count]
        shard.kept.maps[shard.kept.count] = empty
    else:
        map_clear(&shard.kept.maps[shard.kept.count])
    pthread_mutex_unlock(&shard.lock)
    if taken:
        map_clear(&old)
        map_free(&old)


cdef Region* drop_oldest(Storage* stores, Store* store) noexcept nogil:
    """Drop the oldest kept half, and return its memory once no reader points into it. NULL after a fatal failure."""
    cdef Region* region = store.kept.halves[store.kept.count - 1].region
    cdef uint32_t i
    for i in range(SHARDS):
        drop_shard(&store.shards[i])
    store.kept.count -= 1
    bk_store(&store.kept.bytes, <int64_t> kept_memory(store))
    while bk_load(&region.pins) != 0 and not bk_planted(PLANT_HALF_REUSED):
        if fatal_is_set():
            return NULL
        stores_want_back(stores, region)
        usleep(TICK_US)
    bk_store(&region.wanted, 0)
    return region


cdef Region* unused_region(Store* store) noexcept nogil:
    cdef uint32_t i
    for i in range(REGIONS_MOST):
        if store.kept.regions[i].base == NULL:
            return &store.kept.regions[i]
    return NULL


cdef void save_memory(Store* store, Region* region, uint64_t keep) noexcept nogil:
    """Keep a region's memory behind the first `keep` bytes for the next halves, as far as it can be moved. If that
    costs the spare region a part of its own, it is smaller from then on.
    """
    cdef Region* spare = &store.kept.spare
    if spare.base != NULL or region_map(spare, <uint64_t> bk_load(&store.kept.bytes_max)):
        region_pass_on(region, keep, spare)


cdef void cut_waste(Store* store, Half* half) noexcept nogil:
    """Take the memory behind the pages of a half that takes no more adds. What could not be moved and is much is given
    back.
    """
    cdef uint64_t used = <uint64_t> bk_load(&half.used)
    save_memory(store, half.region, used)
    if half.region.touched > used + used // WASTE_SHARE + HUGE_BYTES:
        region_cut(half.region, used)


cdef bint map_again(Half* half, Region* region, uint64_t size) noexcept nogil:
    """Give a half new address space, since a part of its own is lost. Wait if there is none; adds wait, too. Return
    False after a fatal failure.
    """
    region_unmap(region)
    while not half_init(half, region, size):
        if fatal_is_set():
            return False
        usleep(TICK_US)
    return True


cdef bint kept_renew(Storage* stores, Store* store) noexcept nogil:
    cdef int64_t active = bk_load(&store.active)
    cdef Half* half = &store.halves[active ^ 1]
    cdef Half* filled = &store.halves[active]
    cdef Region* region = NULL
    if half.region != NULL:
        return True
    while too_many(store, filled):
        if region != NULL:
            save_memory(store, region, 0)
            region_unmap(region)
        region = drop_oldest(stores, store)
        if region == NULL:
            return False
    if region == NULL:
        region = unused_region(store)
        if not half_init(half, region, filled.region.size):
            region = drop_oldest(stores, store)      # there is one at least, which this half has become
            if region == NULL:
                return False
    half.region = region
    if store.kept.spare.base != NULL and not region_pass_on(&store.kept.spare, 0, region):
        return map_again(half, region, filled.region.size)
    return True


cdef void trim_spare(Store* store, const Half* beside) noexcept nogil:
    """Give memory back that would be too much together with the kept halves and this one."""
    cdef Region* spare = &store.kept.spare
    cdef uint64_t most = <uint64_t> bk_load(&store.kept.bytes_max)
    most -= min(kept_memory(store) + memory_of(beside), most)
    if spare.size >= HUGE_LEAST:
        most &= ~<uint64_t> (HUGE_BYTES - 1)
    if spare.base != NULL and spare.touched > most:
        region_cut(spare, most)


cdef bint kept_trim(Storage* stores, Store* store) noexcept nogil:
    cdef Half* half = &store.halves[bk_load(&store.active) ^ 1]
    cdef Region* region
    if bk_load(&store.kept.bytes_max):
        cut_waste(store, half)
    while too_many(store, half):
        region = drop_oldest(stores, store)
        if region == NULL:
            return False
        save_memory(store, region, 0)
        region_unmap(region)
    trim_spare(store, half)
    return True
