"""Fences are kept by the deleting thread under `Store.writing`, found by ledger_add, dropped in small transactions."""
import errno

from libc.stdint cimport int64_t, uint32_t
from libc.stdlib cimport free, malloc

from bookie._fast.base.by_ledger cimport Chained
from bookie._fast.base.sync cimport bk_load, pthread_mutex_lock, pthread_mutex_unlock
from bookie._fast.base.types cimport NO_MEMORY, NO_SPACE, OK
from bookie._fast.index.ledger_tables cimport index_delete_fence, index_put_fence
from bookie._fast.index.location cimport index_abort, index_begin, index_commit
from bookie._fast.store.ledger_counts cimport FENCES_CLOCK
from bookie._fast.store.ledger_table cimport (
    KeptFence,
    fences_now_ms,
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


cdef struct Renewed:
    int64_t ledger
    int64_t since_ms


cdef int64_t store_ms(const Store* store) noexcept nogil:
    """Return how long bookies have run on this store: the stored time, and the time since."""
    return fences_now_ms(&store.ledgers)


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
    if fence.since_ms > now_ms:
        fence.since_ms = now_ms          # after a crash the store's time continues from the stored one
    return now_ms - fence.since_ms >= kept_ms


cdef struct Look:
    int64_t* old             # ledgers whose fences may be dropped
    uint32_t old_count
    Renewed* renewed         # others, whose times in the index are old
    uint32_t renewed_count


cdef bint is_full(const Look* found) noexcept nogil:
    return found.old_count == DROP_MOST or found.renewed_count == DROP_MOST


cdef void look_at(KeptFence* fence, int64_t now_ms, int64_t kept_ms, Look* found) noexcept nogil:
    """Note a fence if it is old, or else if it was needed. The time of such a fence is taken as stored."""
    if is_old(fence, now_ms, kept_ms):
        found.old[found.old_count] = fence.chained.ledger
        found.old_count += 1
    elif fence.renewed:
        fence.renewed = False
        found.renewed[found.renewed_count].ledger = fence.chained.ledger
        found.renewed[found.renewed_count].since_ms = fence.since_ms
        found.renewed_count += 1


cdef uint32_t look(Shard* shard, uint32_t begin, int64_t now_ms, int64_t kept_ms, Look* found) noexcept nogil:
    """Look at a few buckets from `begin` on; return where to continue, or 0 at the end."""
    cdef Chained* at
    cdef uint32_t i
    cdef uint32_t end
    pthread_mutex_lock(&shard.lock)
    end = min(begin + BUCKETS_A_LOOK, shard.ledgers.fences.size)
    for i in range(begin, end):
        at = shard.ledgers.fences.buckets[i]
        while at != NULL and not is_full(found):
            look_at(<KeptFence*> at, now_ms, kept_ms, found)
            at = at.next
    if end == shard.ledgers.fences.size:
        end = 0
    pthread_mutex_unlock(&shard.lock)
    return end


cdef void look_all(Store* store, int64_t kept_ms, Look* found) noexcept nogil:
    cdef int64_t now_ms = store_ms(store)
    cdef uint32_t at, i
    found.old_count = 0
    found.renewed_count = 0
    for i in range(SHARDS):
        at = look(&store.shards[i], 0, now_ms, kept_ms, found)
        while at and not is_full(found):
            at = look(&store.shards[i], at, now_ms, kept_ms, found)


cdef void give_back(Store* store, const Look* found) noexcept nogil:
    """Mark fences as not stored after all."""
    cdef KeptFence* fence
    cdef Shard* shard
    cdef uint32_t i
    for i in range(found.renewed_count):
        shard = shard_of(store, found.renewed[i].ledger)
        pthread_mutex_lock(&shard.lock)
        fence = ledger_kept_fence(&shard.ledgers, found.renewed[i].ledger)
        if fence != NULL:
            fence.renewed = True
        pthread_mutex_unlock(&shard.lock)


cdef Status write_found(Store* store, const Look* found) noexcept nogil:
    """Delete old fences from the index, and store there the times of renewed ones and the store's own."""
    cdef uint32_t i
    cdef int64_t now_ms = store_ms(store)
    cdef Status status = index_begin(store.index)
    if status != OK:
        return status
    status = index_put_fence(store.index, FENCES_CLOCK, now_ms)
    for i in range(found.renewed_count):
        if status == OK:
            status = index_put_fence(store.index, found.renewed[i].ledger, found.renewed[i].since_ms)
    for i in range(found.old_count):
        if status == OK:
            status = index_delete_fence(store.index, found.old[i])
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


cdef Status drop_some(Store* store, int64_t kept_ms, Look* found, int64_t* dropped, bint* again) noexcept nogil:
    """Drop fences from the index first, as a restart restores those that only memory has dropped.

    A fence that a client needed meanwhile stays in memory, marked as renewed: the next step stores it again.
    """
    cdef Shard* shard
    cdef KeptFence* fence
    cdef uint32_t i
    cdef Status status = OK
    look_all(store, kept_ms, found)
    again[0] = is_full(found)
    if found.old_count or found.renewed_count or is_stale(store):
        status = write_found(store, found)
    if status != OK:
        give_back(store, found)
        return status
    for i in range(found.old_count):
        shard = shard_of(store, found.old[i])
        pthread_mutex_lock(&shard.lock)
        fence = ledger_kept_fence(&shard.ledgers, found.old[i])
        if fence != NULL and not is_old(fence, store_ms(store), kept_ms):
            again[0] = True
        elif fence != NULL:
            ledger_drop_fence(&shard.ledgers, fence)
            dropped[0] += 1
        pthread_mutex_unlock(&shard.lock)
    return OK


cdef Status fences_drop(Store* store, int64_t kept_ms, int64_t* dropped) noexcept nogil:
    cdef Look found
    cdef bint again = True
    cdef Status status = OK
    found.old = <int64_t*> malloc(DROP_MOST * sizeof(int64_t))
    found.renewed = <Renewed*> malloc(DROP_MOST * sizeof(Renewed))
    dropped[0] = 0
    if found.old == NULL or found.renewed == NULL:
        status = NO_MEMORY
    while status == OK and again:
        pthread_mutex_lock(&store.writing)
        status = drop_some(store, kept_ms, &found, dropped, &again)
        pthread_mutex_unlock(&store.writing)
    free(found.old)
    free(found.renewed)
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
