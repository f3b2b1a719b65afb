"""All changes of a ledger by clients: adds, fences, LACs and write closes, under the lock of its shard."""
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport malloc
from libc.string cimport memcpy

from bookie._fast.base.bounds cimport LAC_PACKET_MAX, LAC_PACKET_MIN, ids_hold, key_holds, lac_holds
from bookie._fast.base.cursor cimport load_i64
from bookie._fast.base.planted cimport (
    PLANT_FENCE_IGNORED,
    PLANT_FENCE_IN_MEMORY,
    PLANT_FENCE_RACE,
    PLANT_LIMBO_WRITES,
    PLANT_RISE_UNANNOUNCED,
    PLANT_SECOND_FENCE_EARLY,
    bk_planted,
)
from bookie._fast.base.sync cimport bk_add_relaxed, bk_load, pthread_mutex_lock, pthread_mutex_unlock
from bookie._fast.base.types cimport (
    BAD_REQUEST,
    ENTRY_LAC_MIN,
    FENCED,
    FULL,
    IO_ERROR,
    NO_LEDGER,
    NO_MEMORY,
    OK,
    READ_ONLY,
    UNAUTHORIZED,
)
from bookie._fast.cache.write cimport half_put
from bookie._fast.journal.commit cimport journal_append, journal_append_meta, journal_has_room
from bookie._fast.journal.reader cimport META_FENCE, META_KEY, META_LAC
from bookie._fast.store.ledger_table cimport (
    Ledger,
    ledger_add,
    ledger_check_key,
    ledger_find,
    ledger_judge_key,
    ledger_mark_changed,
    ledger_mark_closed,
    ledger_needs_kept_fence,
    ledger_set_lac,
    ledgers_have_room,
)
from bookie._fast.store.notices cimport post_notices, take_watchers
from bookie._fast.store.stores cimport Shard, Store, journal_of, shard_of, store_of


cdef Status log_key(Storage* stores, Shard* shard, Ledger* ledger) noexcept nogil:
    """Journal the ledger's key before its first record in this process's journal."""
    cdef int64_t id = ledger.chained.ledger
    if ledger.key_logged:
        return OK
    if journal_append_meta(journal_of(stores, id), id, META_KEY, ledger.key, ledger.key_size) == 0:
        return FULL
    ledger.key_logged = True
    ledger_mark_changed(&shard.ledgers, ledger)
    return OK


cdef Status find_or_create(Shard* shard, int64_t id, const uint8_t* key, uint32_t key_size, bint is_writer,
                           Ledger** ledger) noexcept nogil:
    """Find the ledger and check the key. An unknown ledger is created; as in Apache BookKeeper, the first key counts.

    A ledger that was deleted while fenced is not created for its writer; for others it is fenced from the start.
    """
    ledger[0] = ledger_find(&shard.ledgers, id)
    if ledger[0] != NULL:
        return ledger_check_key(&shard.ledgers, ledger[0], key, key_size)
    if not key_holds(key_size):
        return BAD_REQUEST
    if is_writer and ledger_needs_kept_fence(&shard.ledgers, id):
        return FENCED
    if not ledgers_have_room(&shard.ledgers, is_writer):
        return READ_ONLY         # the client takes the ledger to another bookie
    ledger[0] = ledger_add(&shard.ledgers, id, key, key_size)
    if ledger[0] == NULL:
        return NO_MEMORY
    ledger[0].last_known = True
    ledger[0].lac_known = True
    return OK


cdef void close_writes(Store* store, Shard* shard, Ledger* ledger) noexcept nogil:
    if ledger_mark_closed(&shard.ledgers, ledger):
        bk_add_relaxed(&store.stats.ledgers_closed, 1)


cdef Status add_locked(Storage* stores, Store* store, Shard* shard, int64_t id, int64_t entry, const uint8_t* key,
                       uint32_t key_size, const uint8_t* data, uint32_t size, AddKind kind,
                       int64_t* group, uint64_t* watchers) noexcept nogil:
    cdef Ledger* ledger
    cdef int64_t half, lac
    cdef bint is_tail
    cdef Status status = find_or_create(shard, id, key, key_size, kind == ADD_PLAIN, &ledger)
    if status == OK:
        status = log_key(stores, shard, ledger)      # also if the add is refused, as its key may be the first one
    if status != OK:
        return status
    if ledger.fenced:
        if kind == ADD_PLAIN and not bk_planted(PLANT_FENCE_IGNORED):
            return FENCED
        close_writes(store, shard, ledger)       # few entries, the last ones, come from recovery
    if ledger.quarantine and kind != ADD_REPAIR:
        return IO_ERROR          # the refusal after which a writer continues without this bookie
    if bk_planted(PLANT_FENCE_RACE):
        pthread_mutex_unlock(&shard.lock)
        pthread_mutex_lock(&shard.lock)
    if kind == ADD_PLAIN and ledger.limbo and not bk_planted(PLANT_LIMBO_WRITES):
        return UNAUTHORIZED
    if stores.write_data and not journal_has_room(journal_of(stores, id), size):
        return FULL
    # Storage first, journal second: a checkpoint must never trim a record of an entry that the storage does not hold.
    half = bk_load(&store.active)
    is_tail = entry > ledger.last and ledger.last_known
    status = half_put(&store.halves[half], &shard.halves[half], id, entry, data, size, is_tail)
    if status != OK:
        return status
    if entry > ledger.last:
        ledger.last = entry
    if size >= ENTRY_LAC_MIN:
        lac = load_i64(data + 16)
        if lac > ledger.lac:
            ledger.lac = lac
            watchers[0] = 0 if bk_planted(PLANT_RISE_UNANNOUNCED) else take_watchers(ledger, True)
    group[0] = 0
    if stores.write_data:
        group[0] = journal_append(journal_of(stores, id), data, size)
        if group[0] == 0:
            return FULL      # the cached copy is harmless: the retry replaces it
    return OK


cdef Status stores_add(Storage* stores, int64_t ledger, int64_t entry, const uint8_t* key, uint32_t key_size,
                       const uint8_t* data, uint32_t size, AddKind kind, int64_t* group) noexcept nogil:
    cdef Store* store = store_of(stores, ledger)
    cdef Shard* shard = shard_of(store, ledger)
    cdef Status status
    cdef uint64_t watchers = 0
    if not ids_hold(ledger, entry) or (size >= ENTRY_LAC_MIN and not lac_holds(load_i64(data + 16))):
        return BAD_REQUEST       # no index could hold the id, or no entry can ever have the id in the LAC
    pthread_mutex_lock(&shard.lock)
    status = add_locked(stores, store, shard, ledger, entry, key, key_size, data, size, kind, group, &watchers)
    pthread_mutex_unlock(&shard.lock)
    if watchers:
        post_notices(&stores.board, watchers, ledger)
    if status == OK:
        bk_add_relaxed(&store.stats.adds, 1)
        bk_add_relaxed(&store.stats.add_bytes, size)
    return status


cdef Status stores_write_close(Storage* stores, int64_t ledger_id, const uint8_t* key,
                               uint32_t key_size) noexcept nogil:
    cdef Store* store = store_of(stores, ledger_id)
    cdef Shard* shard = shard_of(store, ledger_id)
    cdef Ledger* ledger
    cdef Status status = OK
    pthread_mutex_lock(&shard.lock)
    ledger = ledger_find(&shard.ledgers, ledger_id)
    if ledger != NULL:
        status = ledger_judge_key(ledger, key, key_size)     # it is advisory, and gives an unowned ledger no owner
        if status == OK:
            close_writes(store, shard, ledger)
    pthread_mutex_unlock(&shard.lock)
    return status


cdef Status stores_fence(Storage* stores, int64_t ledger_id, const uint8_t* key, uint32_t key_size,
                         int64_t* group) noexcept nogil:
    cdef Store* store = store_of(stores, ledger_id)
    cdef Shard* shard = shard_of(store, ledger_id)
    cdef Ledger* ledger
    cdef Status status
    cdef uint64_t watchers = 0
    if ledger_id < 0:
        return BAD_REQUEST
    pthread_mutex_lock(&shard.lock)
    if ledger_find(&shard.ledgers, ledger_id) == NULL and ledger_needs_kept_fence(&shard.ledgers, ledger_id):
        status = NO_LEDGER       # it was fenced and deleted: its writer stays refused, and there is nothing to read
    else:
        status = find_or_create(shard, ledger_id, key, key_size, False, &ledger)
    if bk_planted(PLANT_FENCE_IN_MEMORY) and status == OK:
        ledger.fenced = True
        group[0] = 0
    elif status == OK and not (ledger.fenced and ledger.key_logged):
        # A fence is journaled again if the key is not: its key may be the first one that is not empty.
        status = log_key(stores, shard, ledger)
        if status == OK:
            group[0] = journal_append_meta(journal_of(stores, ledger_id), ledger_id, META_FENCE, NULL, 0)
            if group[0] == 0:
                status = FULL
            else:
                ledger.fenced = True
                ledger.fence_group = group[0]
                close_writes(store, shard, ledger)
                ledger_mark_changed(&shard.ledgers, ledger)
                ledger.events += 1
                watchers = take_watchers(ledger, False)
    elif status == OK:
        group[0] = 0 if bk_planted(PLANT_SECOND_FENCE_EARLY) else ledger.fence_group
    pthread_mutex_unlock(&shard.lock)
    if watchers:
        post_notices(&stores.board, watchers, ledger_id)
    return status


cdef int64_t explicit_lac(const Ledger* ledger) noexcept nogil:
    """Return the LAC in the stored packet, which never decreases, or -1."""
    return load_i64(ledger.explicit_lac + 8) if ledger.explicit_lac != NULL else -1


cdef Status stores_write_lac(Storage* stores, int64_t ledger_id, const uint8_t* key, uint32_t key_size,
                             const uint8_t* packet, uint32_t size, int64_t* group) noexcept nogil:
    cdef Shard* shard = shard_of(store_of(stores, ledger_id), ledger_id)
    cdef Ledger* ledger
    cdef Status status
    cdef int64_t lac
    cdef uint64_t watchers = 0
    if ledger_id < 0 or size < LAC_PACKET_MIN or size > LAC_PACKET_MAX or load_i64(packet) != ledger_id:
        return BAD_REQUEST
    lac = load_i64(packet + 8)
    if not lac_holds(lac):
        return BAD_REQUEST
    pthread_mutex_lock(&shard.lock)
    status = find_or_create(shard, ledger_id, key, key_size, True, &ledger)
    if status == FENCED:
        status = NO_LEDGER       # as in Apache BookKeeper; an add gets FENCED
    if status == OK:
        status = IO_ERROR if ledger.quarantine else log_key(stores, shard, ledger)
    if status == OK and lac >= explicit_lac(ledger) and not ledger_set_lac(ledger, packet, size):
        status = NO_MEMORY
    if status == OK:
        ledger_mark_changed(&shard.ledgers, ledger)
        ledger.events += 1
        watchers = take_watchers(ledger, lac > ledger.lac)
        if lac > ledger.lac:
            ledger.lac = lac
        group[0] = journal_append_meta(journal_of(stores, ledger_id), ledger_id, META_LAC, packet, size)
        if group[0] == 0:
            status = FULL
    pthread_mutex_unlock(&shard.lock)
    if watchers:
        post_notices(&stores.board, watchers, ledger_id)
    return status


cdef uint8_t* stores_explicit_lac(Storage* stores, int64_t ledger_id, uint32_t* size) noexcept nogil:
    cdef Shard* shard = shard_of(store_of(stores, ledger_id), ledger_id)
    cdef Ledger* ledger
    cdef uint8_t* copy = NULL
    pthread_mutex_lock(&shard.lock)
    ledger = ledger_find(&shard.ledgers, ledger_id)
    if ledger != NULL and ledger.explicit_lac != NULL:
        size[0] = ledger.explicit_lac_size
        copy = <uint8_t*> malloc(size[0])
        if copy != NULL:
            memcpy(copy, ledger.explicit_lac, size[0])
    pthread_mutex_unlock(&shard.lock)
    return copy
