"""Kept by whoever deletes, under `Store.writing`; looked up by ledger_add; dropped in bounded transactions."""
import errno

from libc.stdint cimport int64_t, uint32_t
from libc.stdlib cimport free, malloc

from bookie._fast.by_ledger cimport Chained
from bookie._fast.index_tables cimport index_delete_fence, index_put_fence
from bookie._fast.ledger_table cimport (
    KeptFence,
    ledger_doubtful,
    ledger_drop_fence,
    ledger_find,
    ledger_keep_fence,
    ledger_kept_fence,
)
from bookie._fast.location_index cimport index_abort, index_begin, index_commit
from bookie._fast.storage cimport StoreRoom
from bookie._fast.stores cimport SHARDS, Shard, shard_of
from bookie._fast.sync cimport pthread_mutex_lock, pthread_mutex_unlock, wall_ms
from bookie._fast.types cimport NO_MEMORY, NO_SPACE, OK

cdef enum:
    DROP_MOST = 20000            # in one transaction
    BUCKETS_A_LOOK = 256         # of a shard's table, so that its lock is held for microseconds


cdef bint needs_fence(const Ledger* ledger) noexcept nogil:
    return ledger.fenced or ledger_doubtful(ledger)


cdef Status fence_keep(Store* store, int64_t ledger_id) noexcept nogil:
    cdef Shard* shard = shard_of(store, ledger_id)
    cdef Ledger* ledger
    cdef int64_t now_ms = wall_ms()
    cdef bint fenced
    cdef bint kept = True
    pthread_mutex_lock(&shard.lock)
    ledger = ledger_find(&shard.ledgers, ledger_id)
    fenced = ledger != NULL and needs_fence(ledger)
    if fenced:
        kept = ledger_keep_fence(&shard.ledgers, ledger_id, now_ms)
    elif ledger != NULL:
        ledger.key_logged = False        # a fence that comes until it is forgotten has all it needs in the journal
    pthread_mutex_unlock(&shard.lock)
    if not kept:
        return NO_MEMORY
    return index_put_fence(store.index, ledger_id, now_ms) if fenced else OK


cdef uint32_t look(Shard* shard, uint32_t begin, int64_t before_ms, int64_t* out, uint32_t* found) noexcept nogil:
    """Old ones in a few buckets from `begin` on; where to look next, 0: at an end."""
    cdef Chained* at
    cdef uint32_t i
    cdef uint32_t end
    pthread_mutex_lock(&shard.lock)
    end = min(begin + BUCKETS_A_LOOK, shard.ledgers.fences.size)
    for i in range(begin, end):
        at = shard.ledgers.fences.buckets[i]
        while at != NULL and found[0] < DROP_MOST:
            if (<KeptFence*> at).deleted_ms < before_ms:
                out[found[0]] = at.ledger
                found[0] += 1
            at = at.next
    if end == shard.ledgers.fences.size:
        end = 0
    pthread_mutex_unlock(&shard.lock)
    return end


cdef uint32_t look_all(Store* store, int64_t before_ms, int64_t* out) noexcept nogil:
    cdef uint32_t found = 0
    cdef uint32_t at, i
    for i in range(SHARDS):
        at = look(&store.shards[i], 0, before_ms, out, &found)
        while at and found < DROP_MOST:
            at = look(&store.shards[i], at, before_ms, out, &found)
    return found


cdef Status drop_stored(Store* store, const int64_t* ids, uint32_t count) noexcept nogil:
    cdef uint32_t i
    cdef Status status = index_begin(store.index)
    if status != OK:
        return status
    for i in range(count):
        status = index_delete_fence(store.index, ids[i])
        if status != OK:
            index_abort(store.index)
            return status
    return index_commit(store.index)


cdef Status drop_some(Store* store, int64_t before_ms, int64_t* ids, uint32_t* count) noexcept nogil:
    """Out of the index first: what is in memory alone would be forgotten by a restart."""
    cdef Shard* shard
    cdef KeptFence* fence
    cdef uint32_t i
    cdef Status status
    count[0] = look_all(store, before_ms, ids)
    if count[0] == 0:
        return OK
    status = drop_stored(store, ids, count[0])
    if status != OK:
        return status
    for i in range(count[0]):
        shard = shard_of(store, ids[i])
        pthread_mutex_lock(&shard.lock)
        fence = ledger_kept_fence(&shard.ledgers, ids[i])
        if fence != NULL:
            ledger_drop_fence(&shard.ledgers, fence)
        pthread_mutex_unlock(&shard.lock)
    return OK


cdef Status fences_drop(Store* store, int64_t before_ms, int64_t* dropped) noexcept nogil:
    cdef uint32_t count = DROP_MOST
    cdef Status status = OK
    cdef int64_t* ids = <int64_t*> malloc(DROP_MOST * sizeof(int64_t))
    dropped[0] = 0
    if ids == NULL:
        return NO_MEMORY
    while status == OK and count == DROP_MOST:
        pthread_mutex_lock(&store.writing)
        status = drop_some(store, before_ms, ids, &count)
        pthread_mutex_unlock(&store.writing)
        if status == OK:
            dropped[0] += count
    free(ids)
    return status


def drop_fences(StoreRoom room, int64_t before_ms) -> int:
    """Drop fences of ledgers deleted before this time (ms since the epoch); how many.

    OSError: ENOSPC (they are kept), EIO (the index failed).
    """
    cdef int64_t dropped = 0
    cdef Status status
    with nogil:
        status = fences_drop(room.store, before_ms, &dropped)
    if status == OK:
        return dropped
    code = errno.ENOSPC if status == NO_SPACE else errno.EIO
    raise OSError(code, f"dropping old fences from the location index failed (status {<int> status})", room.directory)
