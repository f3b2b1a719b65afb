"""Clearing a flushed half, and making it the spare one."""
from libc.stdint cimport int64_t, uint32_t

from bookie._fast.base.fatal cimport fatal_is_set
from bookie._fast.base.planted cimport PLANT_HALF_REUSED, bk_planted
from bookie._fast.base.sync cimport bk_load, bk_store, pthread_mutex_lock, pthread_mutex_unlock
from bookie._fast.base.waker cimport waker_wake
from bookie._fast.cache.runs cimport RunMap, map_clear, map_free, map_init_like
from bookie._fast.cache.write cimport Half, half_reset
from bookie._fast.store.kept_halves cimport kept_take
from bookie._fast.store.storage cimport stores_want_back
from bookie._fast.store.stores cimport SHARDS, Shard

cdef extern from "<unistd.h>" nogil:
    int usleep(unsigned int) noexcept


cdef void tell_clean(Storage* stores, Store* store) noexcept nogil:
    cdef int i
    bk_store(&store.spare_clean, 1)
    for i in range(stores.loop_count):
        waker_wake(stores.loops[i])


cdef bint take_back(Storage* stores, Store* store) noexcept nogil:
    """Make a flushed half the spare one. Return False if it is still pinned."""
    cdef Half* half = &store.halves[bk_load(&store.active) ^ 1]
    if bk_load(&half.region.pins) != 0 and not bk_planted(PLANT_HALF_REUSED):
        return False
    half_reset(half)
    bk_store(&store.spare_read, 0)
    tell_clean(stores, store)
    return True


cdef void clear_shard(Shard* shard, int64_t half) noexcept nogil:
    """Clear a shard's map. Adds do not wait while it is freed: that happens after it was taken out of the shard."""
    cdef RunMap empty
    cdef RunMap old
    cdef bint taken = map_init_like(&empty, &shard.halves[half])
    pthread_mutex_lock(&shard.lock)
    if taken:
        old = shard.halves[half]
        shard.halves[half] = empty
    else:
        map_clear(&shard.halves[half])
    pthread_mutex_unlock(&shard.lock)
    if taken:
        map_free(&old)


cdef void spare_clear(Storage* stores, Store* store) noexcept nogil:
    cdef int64_t half = bk_load(&store.active) ^ 1
    cdef uint32_t i
    for i in range(SHARDS):
        clear_shard(&store.shards[i], half)
    bk_store(&store.spare_read, 1)
    if not take_back(stores, store):
        stores_want_back(stores, store.halves[half].region)


cdef void spare_leave(Storage* stores, Store* store) noexcept nogil:
    if kept_take(store, bk_load(&store.active) ^ 1):
        tell_clean(stores, store)
    else:
        spare_clear(stores, store)


cdef bint spare_take_back(Storage* stores, Store* store) noexcept nogil:
    return bk_load(&store.spare_read) == 0 or take_back(stores, store)


cdef bint spares_take_back(Storage* stores) noexcept nogil:
    cdef uint32_t i
    cdef bint all_of_them = True
    for i in range(stores.count):
        all_of_them = spare_take_back(stores, stores.stores[i]) and all_of_them
    return all_of_them


cdef bint spare_await(Storage* stores, Store* store) noexcept nogil:
    while bk_load(&store.spare_read) and not take_back(stores, store):
        if fatal_is_set():
            return False
        usleep(SPARE_TICK_US)
    return True
