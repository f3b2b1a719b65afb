"""Fences are kept by the deleting thread under `Store.writing`, found by ledger_add, dropped in small transactions."""
import errno

from libc.stdint cimport int64_t, uint32_t
from libc.stdlib cimport free, malloc

from bookie._fast.base.by_ledger cimport Chained
from bookie._fast.base.sync cimport bk_load, now_ns, pthread_mutex_lock, pthread_mutex_unlock
from bookie._fast.base.types cimport NO_MEMORY, NO_SPACE, OK
from bookie._fast.index.ledger_tables cimport index_delete_fence, index_put_fence
from bookie._fast.index.location cimport index_abort, index_begin, index_commit
from bookie._fast.store.ledger_counts cimport FENCES_CLOCK
from bookie._fast.store.ledger_table cimport (
    KeptFence,
    ledger_doubtful,
    ledger_drop_fence,
    ledger_find,
    ledger_keep_fence,
    ledger_kept_fence,
)
from bookie._fast.store.storage cimport DirectoryStore
from bookie._fast.store.stores cimport SHARDS, Shard, shard_of

cdef enum:
    DROP_MOST = 20000            # in one transaction
    BUCKETS_A_LOOK = 256         # of a shard's table per step, so that its lock is held for microseconds
    STORE_MS = 3600000           # how much of the store's time a crash may lose


cdef int64_t store_ms(const Store* store) noexcept nogil:
    """Return how long bookies have run on this store: the stored time, and the time since."""
    return store.ledgers.fences_ms + (now_ns() - store.ledgers.fences_since_ns) // 1000000


cdef bint needs_fence(const Ledger* ledger) noexcept nogil:
    return ledger.fenced or ledger_doubtful(ledger)


cdef Status fence_keep(Store* store, int64_t ledger_id) noexcept nogil:
    cdef Shard* shard = shard_of(store, ledger_id)
    cdef Ledger* ledger
    cdef int64_t now_ms = store_ms(store)
    cdef bint fenced
    cdef bint kept = True
    pthread_mutex_lock(&shard.lock)
    ledger = ledger_find(&shard.ledgers, ledger_id)
    fenced = ledger != NULL and needs_fence(ledger)
    if fenced:
        kept = ledger_keep_fence(&shard.ledgers, ledger_id, now_ms)
    elif ledger != NULL:
        ledger.key_logged = False        # a fence that arrives before the ledger is forgotten then journals the key too
    pthread_mutex_unlock(&shard.lock)
    if not kept:
        return NO_MEMORY
    return index_put_fence(store.index, ledger_id, now_ms) if fenced else OK


cdef size_t fences_fit(Store* store, int64_t* ids, size_t count) noexcept nogil:
    cdef int64_t left = store.ledgers.fences_most - bk_load(&store.ledgers.fences)
    cdef size_t fit = 0
    cdef size_t i
    cdef Shard* shard
    cdef Ledger* ledger
    cdef bint keeps
    for i in range(count):
        shard = shard_of(store, ids[i])
        pthread_mutex_lock(&shard.lock)
        ledger = ledger_find(&shard.ledgers, ids[i])
        keeps = ledger != NULL and needs_fence(ledger) and ledger_kept_fence(&shard.ledgers, ids[i]) == NULL
        pthread_mutex_unlock(&shard.lock)
        left -= keeps
        if not keeps or left >= 0:
            ids[fit] = ids[i]
            fit += 1
    return fit


cdef bint is_old(KeptFence* fence, int64_t now_ms, int64_t kept_ms) noexcept nogil:
    if fence.deleted_ms > now_ms:
        fence.deleted_ms = now_ms        # after a crash the store's time continues from the stored one
    return now_ms - fence.deleted_ms >= kept_ms


cdef uint32_t look(Shard* shard, uint32_t begin, int64_t now_ms, int64_t kept_ms, int64_t* out,
                   uint32_t* found) noexcept nogil:
    """Collect old fences in a few buckets from `begin` on; return where to continue, or 0 at the end."""
    cdef Chained* at
    cdef uint32_t i
    cdef uint32_t end
    pthread_mutex_lock(&shard.lock)
    end = min(begin + BUCKETS_A_LOOK, shard.ledgers.fences.size)
    for i in range(begin, end):
        at = shard.ledgers.fences.buckets[i]
        while at != NULL and found[0] < DROP_MOST:
            if is_old(<KeptFence*> at, now_ms, kept_ms):
                out[found[0]] = at.ledger
                found[0] += 1
            at = at.next
    if end == shard.ledgers.fences.size:
        end = 0
    pthread_mutex_unlock(&shard.lock)
    return end


cdef uint32_t look_all(Store* store, int64_t kept_ms, int64_t* out) noexcept nogil:
    cdef int64_t now_ms = store_ms(store)
    cdef uint32_t found = 0
    cdef uint32_t at, i
    for i in range(SHARDS):
        at = look(&store.shards[i], 0, now_ms, kept_ms, out, &found)
        while at and found < DROP_MOST:
            at = look(&store.shards[i], at, now_ms, kept_ms, out, &found)
    return found


cdef Status drop_stored(Store* store, const int64_t* ids, uint32_t count) noexcept nogil:
    """Delete fences from the index, and store the store's time there."""
    cdef uint32_t i
    cdef int64_t now_ms = store_ms(store)
    cdef Status status = index_begin(store.index)
    if status != OK:
        return status
    status = index_put_fence(store.index, FENCES_CLOCK, now_ms)
    for i in range(count):
        if status == OK:
            status = index_delete_fence(store.index, ids[i])
    if status != OK:
        index_abort(store.index)
        return status
    status = index_commit(store.index)
    if status == OK:
        store.ledgers.fences_stored_ms = now_ms
    return status


cdef bint is_stale(Store* store) noexcept nogil:
    """Return whether the store's time has to be stored in a transaction of its own."""
    return bk_load(&store.ledgers.fences) and store_ms(store) >= store.ledgers.fences_stored_ms + STORE_MS


cdef Status drop_some(Store* store, int64_t kept_ms, int64_t* ids, uint32_t* count) noexcept nogil:
    """Drop fences from the index first, as a restart restores those that only memory has dropped."""
    cdef Shard* shard
    cdef KeptFence* fence
    cdef uint32_t i
    cdef Status status
    count[0] = look_all(store, kept_ms, ids)
    if count[0] == 0 and not is_stale(store):
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


cdef Status fences_drop(Store* store, int64_t kept_ms, int64_t* dropped) noexcept nogil:
    cdef uint32_t count = DROP_MOST
    cdef Status status = OK
    cdef int64_t* ids = <int64_t*> malloc(DROP_MOST * sizeof(int64_t))
    dropped[0] = 0
    if ids == NULL:
        return NO_MEMORY
    while status == OK and count == DROP_MOST:
        pthread_mutex_lock(&store.writing)
        status = drop_some(store, kept_ms, ids, &count)
        pthread_mutex_unlock(&store.writing)
        if status == OK:
            dropped[0] += count
    free(ids)
    return status


def pass_time(DirectoryStore handle, int64_t ms) -> None:
    """Let `ms` milliseconds pass for the fences. For tests."""
    handle.store.ledgers.fences_ms += ms


def drop_fences(DirectoryStore handle, int64_t kept_ms) -> int:
    """Drop fences kept for at least `kept_ms` of the time that bookies ran on this directory; return how many.

    OSError: ENOSPC (the fences are kept), EIO (the index failed).
    """
    cdef int64_t dropped = 0
    cdef Status status
    with nogil:
        status = fences_drop(handle.store, kept_ms, &dropped)
    if status == OK:
        return dropped
    code = errno.ENOSPC if status == NO_SPACE else errno.EIO
    raise OSError(code, f"dropping old fences from the location index failed (status {<int> status})", handle.directory)
