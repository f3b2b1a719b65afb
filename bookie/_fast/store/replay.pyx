"""Replay: puts each journal record back into the storage, idempotently, without checking for fences.

Records of ledgers that neither the journal nor the index knows belong to deleted ledgers and are skipped. A record
that cannot be stored puts its ledger into quarantine, and replay continues.
"""
from libc.stdint cimport UINT64_MAX, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcmp

from bookie._fast.base.bounds cimport HALF_OVERHEAD, LAC_PACKET_MIN, STORED_KEY_MAX, STORED_LAC_MAX, ids_hold, valid_lac
from bookie._fast.base.by_ledger cimport Chained
from bookie._fast.base.cursor cimport load_i64, load_u32
from bookie._fast.base.file cimport Files
from bookie._fast.base.open_file cimport open_to_read
from bookie._fast.base.planted cimport (
    PLANT_FENCE_NOT_REPLAYED,
    PLANT_LAC_NOT_REPLAYED,
    PLANT_LAST_NOT_RAISED,
    PLANT_REPLAY_AFTER_MARK,
    bk_planted,
)
from bookie._fast.base.sync cimport bk_load, bk_store, pthread_mutex_lock, pthread_mutex_unlock
from bookie._fast.base.types cimport (
    ENTRY_LAC_MIN,
    FULL,
    IO_ERROR,
    LENGTH_PREFIX,
    NO_MEMORY,
    NO_SPACE,
    OK,
    TOO_MANY_REQUESTS,
    Status,
)
from bookie._fast.cache.pages cimport page_offset
from bookie._fast.cache.runs cimport Found, LedgerRuns, map_find, runs_find
from bookie._fast.cache.write cimport half_put, half_resize
from bookie._fast.index.codec cimport BAD_ENTRY_ID, BAD_KEYS, BAD_LAC, QuarantineReason
from bookie._fast.journal.reader cimport (
    META_FENCE,
    META_KEY,
    META_LAC,
    JournalRecord,
    JournalScan,
    journal_scan,
)
from bookie._fast.store.flush cimport (
    store_flush,
    store_flush_spare,
    store_flush_spare_whole,
    store_swap,
    store_take_marks,
)
from bookie._fast.store.flushers cimport flusher_begin, flusher_end
from bookie._fast.store.ledger_table cimport (
    Ledger,
    all_zero,
    ledger_add,
    ledger_find,
    ledger_mark_changed,
    ledger_quarantine,
    ledger_set_lac,
    ledger_take_key,
)
from bookie._fast.store.pack_cache cimport pack_cache
from bookie._fast.store.storage cimport StorageEngine
from bookie._fast.store.stores cimport SHARDS, STORES_MOST, Shard, Storage, Store, shard_of

NOT_HERE = -1                # instead of an offset: the whole file is before the mark

cdef struct Replay:
    Storage* stores
    uint64_t begins[STORES_MOST]     # for each store its mark in this file; earlier records are in its logs
    bint full[STORES_MOST]           # for each store: neither memory nor disk takes more, its entries are held
    int64_t held[STORES_MOST]        # where the first held entry lies; -1 if there is none
    bint again                       # a later pass, beside other threads: only entries that were held
    int64_t entries
    int64_t fences
    int64_t skipped
    int64_t refused          # records that could not be stored and put their ledger into quarantine


cdef Status refuse(Replay* replay, Shard* shard, Ledger* ledger, QuarantineReason reason) noexcept nogil:
    ledger_quarantine(&shard.ledgers, ledger, reason)
    replay.refused += 1
    return OK


cdef bint sized(const JournalRecord* record, uint32_t least, uint32_t most, uint32_t* size) noexcept nogil:
    """Get the size of the key or LAC in a record; return False if it does not fit the record or the limits."""
    size[0] = load_u32(record.data + 16) if record.length >= 20 else 0
    return record.length >= 20 and least <= size[0] <= most and size[0] <= record.length - 20


cdef Status replay_key(Replay* replay, Shard* shard, Ledger* ledger, const JournalRecord* record) noexcept nogil:
    cdef uint32_t size
    cdef bint whole = sized(record, 0, STORED_KEY_MAX, &size)
    if ledger == NULL:
        size = size if whole else 0
        ledger = ledger_add(&shard.ledgers, record.ledger, record.data + 20, size)
        if ledger == NULL:
            return NO_MEMORY
        ledger.last_known = True
        ledger.lac_known = True
        ledger_mark_changed(&shard.ledgers, ledger)
        return OK if whole else refuse(replay, shard, ledger, BAD_KEYS)
    if not whole:
        return refuse(replay, shard, ledger, BAD_KEYS)
    if all_zero(record.data + 20, size):
        return OK                # the index may hold a key that has replaced it since
    if ledger_take_key(&shard.ledgers, ledger, record.data + 20, size) != OK:
        return refuse(replay, shard, ledger, BAD_KEYS)
    return OK


cdef Status replay_lac(Replay* replay, Shard* shard, Ledger* ledger, const JournalRecord* record) noexcept nogil:
    cdef uint32_t size
    cdef int64_t lac
    if not sized(record, LAC_PACKET_MIN, STORED_LAC_MAX, &size) or load_i64(record.data + 20) != record.ledger:
        return refuse(replay, shard, ledger, BAD_LAC)
    lac = load_i64(record.data + 20 + 8)
    if (ledger.explicit_lac != NULL and load_i64(ledger.explicit_lac + 8) > lac) or bk_planted(PLANT_LAC_NOT_REPLAYED):
        return OK
    if not ledger_set_lac(ledger, record.data + 20, size):
        return NO_MEMORY
    if valid_lac(lac) > ledger.lac:
        ledger.lac = lac
    ledger_mark_changed(&shard.ledgers, ledger)
    return OK


cdef bint is_held(Store* store, Shard* shard, const JournalRecord* record) noexcept nogil:
    """Return whether the newest copy of an entry in memory is this one: journals may hold it twice (carry_over), and
    there might be no memory for both. Under the shard's lock.
    """
    cdef int64_t half = bk_load(&store.active)
    cdef LedgerRuns* runs
    cdef const uint8_t* held
    cdef Found found
    cdef int _half
    for _half in range(2):
        runs = map_find(&shard.halves[half], record.ledger)
        if runs != NULL:
            runs_find(runs, record.kind, &found)
            if found.run != NULL:
                held = found.run.page.data + page_offset(found.run.page, found.slot)
                return load_u32(held) == record.length and memcmp(held + LENGTH_PREFIX, record.data, record.length) == 0
        half ^= 1
    return False


cdef Status put_entry(Replay* replay, Store* store, uint32_t at, const JournalRecord* record) noexcept nogil:
    """Put an entry, with the shard's lock. FULL: the active half is full."""
    cdef Shard* shard = shard_of(store, record.ledger)
    cdef Ledger* ledger
    cdef int64_t half, lac
    cdef Status status = OK
    pthread_mutex_lock(&shard.lock)
    ledger = ledger_find(&shard.ledgers, record.ledger)
    if ledger == NULL:
        replay.skipped += not replay.again
    elif not ids_hold(record.ledger, record.kind):
        status = refuse(replay, shard, ledger, BAD_ENTRY_ID)
    elif record.kind <= ledger.last and is_held(store, shard, record):
        replay.entries += 1
    elif ledger.lagging or not replay.again:
        half = bk_load(&store.active)
        if replay.full[at]:
            ledger.lagging = True
            if replay.held[at] < 0:
                replay.held[at] = <int64_t> record.position
        else:
            status = half_put(&store.halves[half], &shard.halves[half], record.ledger, record.kind, record.data,
                              record.length, record.kind > ledger.last and ledger.last_known)
            replay.entries += status == OK
        if record.kind > ledger.last and not bk_planted(PLANT_LAST_NOT_RAISED):
            ledger.last = record.kind
        if record.length >= ENTRY_LAC_MIN:
            lac = valid_lac(load_i64(record.data + 16))
            if lac > ledger.lac:
                ledger.lac = lac
    pthread_mutex_unlock(&shard.lock)
    return FULL if status == TOO_MANY_REQUESTS else status


cdef bint is_known(Shard* shard, int64_t ledger) noexcept nogil:
    cdef bint known
    pthread_mutex_lock(&shard.lock)
    known = ledger_find(&shard.ledgers, ledger) != NULL
    pthread_mutex_unlock(&shard.lock)
    return known


cdef Status put_large(Replay* replay, Store* store, uint32_t at, const JournalRecord* record) noexcept nogil:
    """Put an entry that is too large for a half, as the write cache was larger when it was added. Nothing else runs
    then: an empty half is enlarged for this entry until it is flushed. On a full disk the ledger lags.
    """
    cdef Status status
    cdef int64_t half
    cdef uint64_t size
    if not is_known(shard_of(store, record.ledger), record.ledger):
        replay.skipped += 1
        return OK
    status = flusher_end(store)
    if status == IO_ERROR:
        return status
    status = store_flush(replay.stores, store)
    half = bk_load(&store.active)
    size = store.halves[half].region.size
    if status == NO_SPACE:
        replay.full[at] = True
        bk_store(&store.lagging, 1)
        return put_entry(replay, store, at, record)
    if status == OK and not half_resize(&store.halves[half], <uint64_t> record.length + HALF_OVERHEAD):
        return NO_MEMORY
    if status == OK:
        status = put_entry(replay, store, at, record)
    if status != OK:
        return status
    status = store_flush(replay.stores, store)
    if status == OK and not half_resize(&store.halves[half], size):
        return NO_MEMORY
    return OK if status == NO_SPACE else status


cdef Status make_room(Replay* replay, Store* store) noexcept nogil:
    """Let the other half take entries, as soon as it is flushed. The full one is flushed while the replay goes on."""
    cdef Status status
    if replay.again:
        return store_flush(replay.stores, store)
    status = flusher_end(store)
    if status != IO_ERROR:
        status = store_flush_spare(replay.stores, store)     # if that flush failed, once more
    if status == OK:
        store_take_marks(store)
        status = store_swap(replay.stores, store)
    if status == OK:
        flusher_begin(replay.stores, store, store_flush_spare_whole)
    return status


cdef Status replay_entry(Replay* replay, Store* store, uint32_t at, const JournalRecord* record) noexcept nogil:
    """Put an entry into the cache, flushing as needed. On a full disk both halves are filled, then entries are held."""
    cdef int64_t half
    cdef Status status = FULL
    cdef Status flushed
    cdef int _try
    half = bk_load(&store.active)
    if <uint64_t> record.length + HALF_OVERHEAD > store.halves[half].region.size and not replay.again:
        return put_large(replay, store, at, record)
    for _try in range(4):
        half = bk_load(&store.active)
        status = put_entry(replay, store, at, record)
        if status != FULL:
            return status
        flushed = make_room(replay, store)
        if flushed == NO_SPACE and bk_load(&store.active) == half:
            if not replay.again and pack_cache(store):
                continue
            replay.full[at] = True
            bk_store(&store.lagging, 1)
        elif flushed != OK and flushed != NO_SPACE:
            return flushed
    return status


cdef Status replay_fact(Replay* replay, Shard* shard, const JournalRecord* record) noexcept nogil:
    """Take a key, a fence or a LAC, with the shard's lock, because a flush may be reading what it changes."""
    cdef Ledger* ledger = ledger_find(&shard.ledgers, record.ledger)
    cdef Status status = OK
    if record.kind == META_KEY:
        return replay_key(replay, shard, ledger, record)
    if ledger == NULL or (record.kind != META_FENCE and record.kind != META_LAC):
        replay.skipped += 1
    elif record.kind == META_LAC:
        status = replay_lac(replay, shard, ledger, record)
    else:
        ledger.fenced = not bk_planted(PLANT_FENCE_NOT_REPLAYED)
        ledger_mark_changed(&shard.ledgers, ledger)
        replay.fences += 1
    return status


cdef Status replay_record(void* context, const JournalRecord* record) noexcept nogil:
    cdef Replay* replay = <Replay*> context
    cdef Store* store
    cdef Shard* shard
    cdef uint32_t at
    cdef Status status
    if record.ledger < 0:
        replay.skipped += 1
        return OK
    at = <uint32_t> (<uint64_t> record.ledger % replay.stores.count)
    if record.position < replay.begins[at]:
        return OK
    if record.position == replay.begins[at] and bk_planted(PLANT_REPLAY_AFTER_MARK):
        return OK
    store = replay.stores.stores[at]
    if record.kind >= 0:
        return replay_entry(replay, store, at, record)
    if replay.again:
        return OK                # the first pass has taken everything but entries
    shard = shard_of(store, record.ledger)
    pthread_mutex_lock(&shard.lock)
    status = replay_fact(replay, shard, record)
    pthread_mutex_unlock(&shard.lock)
    return status


def end_lag(StorageEngine stores, int at) -> None:
    """End a store's lag: it has everything in the journals, so its ledgers are certain again. Any thread."""
    cdef Store* store = stores.stores.stores[at]
    cdef Shard* shard
    cdef Chained* one
    cdef uint32_t i, b
    with nogil:
        for i in range(SHARDS):
            shard = &store.shards[i]
            pthread_mutex_lock(&shard.lock)
            for b in range(shard.ledgers.table.size):
                one = shard.ledgers.table.buckets[b]
                while one != NULL:
                    (<Ledger*> one).lagging = False
                    one = one.next
            pthread_mutex_unlock(&shard.lock)
        bk_store(&store.lagging, 0)


def replay_file(StorageEngine stores, Files files, path: str, int64_t journal_id, uint64_t start, begins: list[int], *,
                full=(), again: bool = False) -> tuple[dict[str, int], list[int]]:
    """Replay the journal file at `path`, from the group at `start`, into each store from its offset in `begins`.

    Args:
        stores: the storage engine.
        files: file operations for reading the journal.
        path: the journal file.
        journal_id: the id of the file.
        start: where to begin, 0 for after the header.
        begins: for each store the offset of its mark in this file, or NOT_HERE.
        full: stores that take no entries, because neither memory nor disk has room.
        again: only replay entries that were held before, beside a bookie that serves.

    Returns:
        The findings of the scan, and for each store where its first entry lies that was held for lack of room, or -1.
        Findings: status, version, end, records, entries, fences, skipped, groups, torn, damaged, damaged_at, refused
        (records that put their ledger into quarantine).

    Raises:
        OSError: if the journal cannot be read, or its contents not be flushed.
        ValueError: if `begins` has not one offset for each store.
    """
    cdef Replay replay
    cdef JournalScan scan
    cdef Status status
    cdef int fd
    if len(begins) != <int> stores.stores.count:
        raise ValueError(f"{len(begins)} offsets for {stores.stores.count} ledger directories; pass one for each")
    for i, begin in enumerate(begins):
        replay.begins[i] = UINT64_MAX if begin == NOT_HERE else begin
        replay.full[i] = i in full
        replay.held[i] = -1
    replay.again = again
    replay.stores = stores.stores
    replay.entries = replay.fences = replay.skipped = replay.refused = 0
    fd = open_to_read(files.ops, path)
    with nogil:
        status = journal_scan(files.ops, fd, journal_id, start, replay_record, &replay, &scan)
        files.ops.close(fd)
    if status == IO_ERROR:
        raise OSError(5, "cannot read the journal file, or flush its entries", path)
    found = {
        "status": <int> status,
        "version": scan.version,
        "end": scan.end,
        "records": scan.records,
        "entries": replay.entries,
        "fences": replay.fences,
        "skipped": replay.skipped,
        "groups": scan.groups,
        "torn": scan.torn,
        "damaged": scan.damaged,
        "damaged_at": scan.damaged_at,
        "refused": replay.refused,
    }
    return found, [replay.held[i] for i in range(stores.stores.count)]
