"""Replay: each journal record back into the storage, idempotent, without asking whether the ledger is fenced.

Records of ledgers that neither the journal nor the index knows belong to deleted ledgers and are skipped.
"""
from libc.stdint cimport UINT64_MAX, int64_t, uint32_t, uint64_t

from bookie._fast.bounds cimport lac_told
from bookie._fast.checkpoint cimport store_flush
from bookie._fast.cursor cimport load_i64, load_u32
from bookie._fast.file cimport Files
from bookie._fast.journal_reader cimport (
    META_FENCE,
    META_KEY,
    META_LAC,
    JournalRecord,
    JournalScan,
    journal_scan,
)
from bookie._fast.ledger_table cimport (
    Ledger,
    ledger_add,
    all_zero,
    ledger_take_key,
    ledger_find,
    ledger_mark_changed,
    ledger_set_lac,
)
from bookie._fast.storage cimport StoresRoom
from bookie._fast.stores cimport STORES_MOST, Shard, Store, Stores, shard_of
from bookie._fast.sync cimport bk_load
from bookie._fast.types cimport (
    CORRUPT,
    ENTRY_LAC_MIN,
    FULL,
    IO_ERROR,
    NO_MEMORY,
    OK,
    TOO_MANY_REQUESTS,
    UNAUTHORIZED,
    Status,
)
from bookie._fast.write_cache cimport half_put

cdef extern from "<fcntl.h>" nogil:
    int O_RDONLY
    int O_CLOEXEC

NOT_HERE = -1                # in place of an offset: the whole file is behind the mark

cdef struct Replay:
    Stores* stores
    uint64_t begins[STORES_MOST]     # of each store: its mark in this file; what lies before is in its logs
    int64_t entries
    int64_t fences
    int64_t skipped
    int64_t bad_key          # the ledger whose key differs from the stored one


cdef Status replay_key(Replay* replay, Shard* shard, const JournalRecord* record) noexcept nogil:
    cdef uint32_t size
    cdef Ledger* ledger
    if record.length < 20:
        return CORRUPT
    size = load_u32(record.data + 16)
    if size > record.length - 20:
        return CORRUPT
    ledger = ledger_find(&shard.ledgers, record.ledger)
    if ledger == NULL:
        ledger = ledger_add(&shard.ledgers, record.ledger, record.data + 20, size)
        if ledger == NULL:
            return NO_MEMORY
        ledger.last_known = True
        ledger.lac_known = True
        ledger_mark_changed(&shard.ledgers, ledger)
        return OK
    if all_zero(record.data + 20, size):
        return OK                # the key was not known yet, and the index may hold what has replaced it since
    if ledger_take_key(&shard.ledgers, ledger, record.data + 20, size) != OK:
        replay.bad_key = record.ledger
        return UNAUTHORIZED
    return OK


cdef Status replay_lac(Shard* shard, Ledger* ledger, const JournalRecord* record) noexcept nogil:
    cdef uint32_t size
    cdef int64_t lac
    if record.length < 20:
        return CORRUPT
    size = load_u32(record.data + 16)
    if size < 16 or size > record.length - 20:
        return CORRUPT
    lac = load_i64(record.data + 20 + 8)
    if ledger.explicit_lac != NULL and load_i64(ledger.explicit_lac + 8) > lac:
        return OK
    if not ledger_set_lac(ledger, record.data + 20, size):
        return NO_MEMORY
    if lac_told(lac) > ledger.lac:
        ledger.lac = lac
    ledger_mark_changed(&shard.ledgers, ledger)
    return OK


cdef Status replay_entry(Replay* replay, Store* store, Shard* shard, Ledger* ledger,
                         const JournalRecord* record) noexcept nogil:
    cdef int64_t half, lac
    cdef Status status = FULL
    cdef int _try
    for _try in range(2):
        half = bk_load(&store.active)
        status = half_put(&store.halves[half], &shard.halves[half], record.ledger, record.kind, record.data,
                          record.length, record.kind > ledger.last and ledger.last_known)
        if status != FULL and status != TOO_MANY_REQUESTS:
            break
        status = store_flush(replay.stores, store)
        if status != OK:
            return status
        status = FULL
    if status != OK:
        return status
    if record.kind > ledger.last:
        ledger.last = record.kind
    if record.length >= ENTRY_LAC_MIN:
        lac = lac_told(load_i64(record.data + 16))
        if lac > ledger.lac:
            ledger.lac = lac
    replay.entries += 1
    return OK


cdef Status replay_record(void* context, const JournalRecord* record) noexcept nogil:
    cdef Replay* replay = <Replay*> context
    cdef Store* store
    cdef Shard* shard
    cdef Ledger* ledger
    cdef uint32_t at
    if record.ledger < 0:
        replay.skipped += 1
        return OK
    at = <uint32_t> (<uint64_t> record.ledger % replay.stores.count)
    if record.position < replay.begins[at]:
        return OK
    store = replay.stores.stores[at]
    shard = shard_of(store, record.ledger)
    if record.kind == META_KEY:
        return replay_key(replay, shard, record)
    ledger = ledger_find(&shard.ledgers, record.ledger)
    if ledger == NULL:
        replay.skipped += 1
        return OK
    if record.kind >= 0:
        return replay_entry(replay, store, shard, ledger, record)
    if record.kind == META_FENCE:
        ledger.fenced = True
        ledger_mark_changed(&shard.ledgers, ledger)
        replay.fences += 1
        return OK
    if record.kind == META_LAC:
        return replay_lac(shard, ledger, record)
    replay.skipped += 1
    return OK


def replay_file(StoresRoom stores, Files files, path: str, int64_t journal_id, begins: list[int]) -> dict[str, int]:
    """Replay the journal file at `path` into each store from its offset in `begins` (0: after the header).

    Returns the scan's findings: status, version, end, records, entries, fences, skipped, groups, torn, damaged,
    damaged_at, bad_key (-1: none).
    """
    cdef Replay replay
    cdef JournalScan scan
    cdef Status status
    cdef uint64_t start
    cdef int fd
    cdef const char* name
    if len(begins) != <int> stores.stores.count:
        raise ValueError(f"{len(begins)} offsets for {stores.stores.count} ledger directories; give one each")
    for i, begin in enumerate(begins):
        replay.begins[i] = UINT64_MAX if begin == NOT_HERE else begin
    start = min([begin for begin in begins if begin != NOT_HERE], default=0)
    encoded = path.encode()
    name = encoded
    replay.stores = stores.stores
    replay.entries = replay.fences = replay.skipped = 0
    replay.bad_key = -1
    fd = files.ops.open(name, O_RDONLY | O_CLOEXEC, 0)
    if fd < 0:
        raise OSError(-fd, "cannot open the journal file", path)
    with nogil:
        status = journal_scan(files.ops, fd, journal_id, start, replay_record, &replay, &scan)
        files.ops.close(fd)
    if status == IO_ERROR:
        raise OSError(5, "cannot read the journal file, or flush what it holds", path)
    return {
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
        "bad_key": replay.bad_key,
    }
