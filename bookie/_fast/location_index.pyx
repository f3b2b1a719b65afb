"""The location index on LMDB: lookups by any thread through its own reader, writes by one thread in one transaction.

An IndexReader owns a read transaction that is renewed for each call and reset after it, so that no old pages stay
pinned. The LocationIndex owns the environment, the write transaction and the scratch of the writing thread.
"""
from libc.errno cimport EIO, ENOMEM, ENOSPC
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memset

from bookie._fast.bounds cimport STORED_KEY_MAX, STORED_LAC_MAX
from bookie._fast.cursor cimport store_i64
from bookie._fast.lmdb_c cimport (
    MDB_CORRUPTED,
    MDB_CREATE,
    MDB_FIRST,
    MDB_NEXT,
    MDB_NORDAHEAD,
    MDB_NOTFOUND,
    MDB_NOTLS,
    MDB_RDONLY,
    MDB_RESERVE,
    MDB_cursor,
    MDB_dbi,
    MDB_env,
    MDB_envinfo,
    MDB_stat,
    MDB_txn,
    MDB_val,
    mdb,
    mdb_full_maps,
    mdb_status,
)
from bookie._fast.run_codec cimport (
    FENCE_VALUE_BYTES,
    LEDGER_KEY_BYTES,
    StoredRun,
    fence_pack,
    fence_unpack,
    ledger_pack,
    ledger_packed_size,
    ledger_unpack,
    run_bytes,
    run_length,
)
from bookie._fast.run_key cimport RunKey
from bookie._fast.run_table cimport (
    RunWriter,
    run_add,
    run_delete_ledger,
    run_delete_some,
    run_describe,
    run_from,
    run_last,
    run_put,
    run_relocate,
    run_seek,
    run_spanning,
)
from bookie._fast.run_upgrade cimport Upgrade, run_upgrade_some
from bookie._fast.sync cimport bk_add, bk_exchange, bk_fence, bk_load, bk_store, now_ns
from bookie._fast.types cimport BAD_REQUEST, CORRUPT, FULL, IO_ERROR, NO_ENTRY, NO_SPACE, OK, Status

cdef extern from "<sys/statvfs.h>" nogil:
    struct statvfs_t "statvfs":
        uint64_t f_bavail
        uint64_t f_frsize
    int fstatvfs(int, statvfs_t*) noexcept

cdef extern from "<sched.h>" nogil:
    int sched_yield() noexcept

cdef enum:
    GROW_WAIT_NS = 100000000                # readers are let finish for so long; then the next transaction tries again
    FULL_DISK_BYTES = 1 << 20               # less than this left: a write that came out short met a full disk

cdef struct LocationIndex:
    MDB_env* env                            # constant after open
    MDB_dbi locations
    MDB_dbi ledgers
    MDB_dbi fences
    int64_t failed                          # atomic: set by the writing thread, never cleared
    int64_t inside                          # atomic: read transactions that are open
    int64_t moving                          # atomic: the map is being replaced, no read may begin
    # the writing thread's
    MDB_txn* txn                            # NULL outside a transaction
    Status broken                           # the first failure inside the open transaction
    int64_t full_maps                       # `mdb_full_maps` when it began
    bint too_small                          # the map was full: the next transaction makes it larger first
    RunWriter runs

cdef struct IndexReader:
    LocationIndex* index
    MDB_txn* txn
    MDB_cursor* runs
    MDB_cursor* ledgers
    uint32_t[RUN_SLOTS_MAX] lengths


# --- opening ---

cdef LocationIndex* index_open(const char* path, uint64_t map_bytes, int* error) noexcept nogil:
    cdef LocationIndex* index = <LocationIndex*> calloc(1, sizeof(LocationIndex))
    error[0] = ENOMEM
    if index == NULL:
        return NULL
    error[0] = open_environment(index, path, map_bytes)
    if error[0] == 0:
        error[0] = open_tables(index)
    if error[0] == 0:
        error[0] = upgrade_runs(index)
    if error[0] == 0:
        return index
    index_close(index)
    return NULL


cdef int open_environment(LocationIndex* index, const char* path, uint64_t map_bytes) noexcept nogil:
    cdef int dead
    cdef int error = mdb.env_create(&index.env)
    if error == 0:
        error = mdb.env_set_mapsize(index.env, map_bytes)
    if error == 0:
        error = mdb.env_set_maxdbs(index.env, 4)
    if error == 0:
        error = mdb.env_set_maxreaders(index.env, INDEX_READERS_MAX)
    if error == 0:
        # The kernel's readahead around each page of a random look-up would bring mostly pages of other ledgers.
        error = mdb.env_open(index.env, path, MDB_NOTLS | MDB_NORDAHEAD, 0o644)
    if error == 0:
        error = mdb.reader_check(index.env, &dead)
    return error


cdef int open_tables(LocationIndex* index) noexcept nogil:
    cdef MDB_txn* txn
    cdef int error = mdb.txn_begin(index.env, NULL, 0, &txn)
    if error:
        return error
    error = mdb.dbi_open(txn, b"locations", MDB_CREATE, &index.locations)
    if error == 0:
        error = mdb.dbi_open(txn, b"ledgers", MDB_CREATE, &index.ledgers)
    if error == 0:
        error = mdb.dbi_open(txn, b"fences", MDB_CREATE, &index.fences)
    if error == 0:
        return mdb.txn_commit(txn)
    mdb.txn_abort(txn)
    return error


cdef int upgrade_runs(LocationIndex* index) noexcept nogil:
    """An empty table begins its chain; one of the first version is brought to this one."""
    cdef Upgrade upgrade
    cdef Status status = OK
    memset(&upgrade, 0, sizeof(upgrade))
    while status == OK and not upgrade.done:
        status = index_begin(index)
        if status == OK:
            status = run_upgrade_some(&index.runs, &upgrade)
        if status == OK:
            status = index_commit(index)
    index_abort(index)
    if status == CORRUPT:
        return MDB_CORRUPTED
    return 0 if status == OK else ENOSPC if status == NO_SPACE else EIO


cdef void index_close(LocationIndex* index) noexcept nogil:
    if index.txn != NULL:
        index_abort(index)
    if index.env != NULL:
        mdb.env_close(index.env)
    free(index)


cdef const char* index_error_text(int error) noexcept nogil:
    return mdb.strerror(error)


cdef void fill_hit(const StoredRun* run, uint32_t slot, IndexHit* hit) noexcept nogil:
    cdef uint32_t before
    hit.entry = run.first + slot
    hit.log_id = run.log_id
    hit.offset = run.offset + run_bytes(run, 0, slot, &before)
    hit.length = run_length(run, slot)
    hit.span_bytes = run_bytes(run, slot, run.count, &hit.span_entries)
    hit.span_last = run.first + run.count - 1


# --- readers ---

cdef IndexReader* index_reader(LocationIndex* index) noexcept nogil:
    cdef IndexReader* reader
    if bk_load(&index.failed):
        return NULL
    reader = <IndexReader*> calloc(1, sizeof(IndexReader))
    if reader == NULL:
        return NULL
    reader.index = index
    go_in(index)
    if (mdb.txn_begin(index.env, NULL, MDB_RDONLY, &reader.txn) == 0
            and mdb.cursor_open(reader.txn, index.locations, &reader.runs) == 0
            and mdb.cursor_open(reader.txn, index.ledgers, &reader.ledgers) == 0):
        leave(reader)
        return reader
    index_reader_free(reader)
    bk_add(&index.inside, -1)
    return NULL


cdef void index_reader_free(IndexReader* reader) noexcept nogil:
    if reader.runs != NULL:
        mdb.cursor_close(reader.runs)
    if reader.ledgers != NULL:
        mdb.cursor_close(reader.ledgers)
    if reader.txn != NULL:
        mdb.txn_abort(reader.txn)
    free(reader)


cdef void go_in(LocationIndex* index) noexcept nogil:
    """Readers hold up each other never, and a writer that moves the map for as long as a read takes."""
    while True:
        bk_add(&index.inside, 1)
        bk_fence()               # who moves the map stores first and counts then
        if not bk_load(&index.moving):
            return
        bk_add(&index.inside, -1)
        while bk_load(&index.moving):
            sched_yield()


cdef Status enter(IndexReader* reader, MDB_cursor* cursor) noexcept nogil:
    """Renew the transaction on the latest commit; on OK the caller leaves it."""
    go_in(reader.index)
    if bk_load(&reader.index.failed) or mdb.txn_renew(reader.txn):
        bk_add(&reader.index.inside, -1)
        return IO_ERROR
    if mdb.cursor_renew(reader.txn, cursor):
        leave(reader)
        return IO_ERROR
    return OK


cdef void leave(IndexReader* reader) noexcept nogil:
    mdb.txn_reset(reader.txn)
    bk_add(&reader.index.inside, -1)


cdef Status index_lookup(IndexReader* reader, int64_t ledger, int64_t entry, IndexHit* hit) noexcept nogil:
    cdef StoredRun run
    cdef Status status
    if entry < 0:
        return NO_ENTRY
    status = enter(reader, reader.runs)
    if status != OK:
        return status
    status = run_spanning(reader.runs, ledger, entry, &run)
    if status == OK and run_length(&run, <uint32_t> (entry - run.first)) == 0:
        status = NO_ENTRY
    if status == OK:
        fill_hit(&run, <uint32_t> (entry - run.first), hit)
    leave(reader)
    return status


cdef Status index_next(IndexReader* reader, int64_t ledger, int64_t entry, IndexHit* hit) noexcept nogil:
    cdef StoredRun run
    cdef uint32_t slot = 0
    cdef Status status = enter(reader, reader.runs)
    if status != OK:
        return status
    entry = max(entry, <int64_t> 0)
    status = run_seek(reader.runs, ledger, entry, &run)
    if status == OK:
        if run.first < entry:
            slot = <uint32_t> (entry - run.first)
        while run_length(&run, slot) == 0:      # ends: the last slot of a run is present
            slot += 1
        fill_hit(&run, slot, hit)
    leave(reader)
    return status


cdef Status index_run_at(IndexReader* reader, int64_t ledger, int64_t entry, IndexRun* run) noexcept nogil:
    cdef StoredRun stored
    cdef Status status = enter(reader, reader.runs)
    if status != OK:
        return status
    status = run_seek(reader.runs, ledger, entry, &stored)
    if status == OK:
        run_describe(&stored, reader.lengths, run)
    leave(reader)
    return status


cdef Status index_last(IndexReader* reader, int64_t ledger, int64_t* entry) noexcept nogil:
    cdef StoredRun run
    cdef Status status = enter(reader, reader.runs)
    if status != OK:
        return status
    status = run_last(reader.runs, ledger, &run)
    if status == OK:
        entry[0] = run.first + run.count - 1
    leave(reader)
    return status


cdef Status index_each_ledger(IndexReader* reader, ledger_fn each, void* context) noexcept nogil:
    cdef LedgerRecord record
    cdef MDB_val key, value
    cdef int error
    cdef Status status = enter(reader, reader.ledgers)
    if status != OK:
        return status
    error = mdb.cursor_get(reader.ledgers, &key, &value, MDB_FIRST)
    while error == 0 and status == OK:
        status = ledger_unpack(key.mv_data, key.mv_size, value.mv_data, value.mv_size, &record)
        if status == OK:
            status = each(context, &record)
            error = mdb.cursor_get(reader.ledgers, &key, &value, MDB_NEXT)
    leave(reader)
    if status == OK and error != MDB_NOTFOUND:
        return IO_ERROR
    return status


cdef Status index_each_fence(IndexReader* reader, fence_fn each, void* context) noexcept nogil:
    """At the start alone, so its cursor is not kept."""
    cdef MDB_cursor* fences
    cdef MDB_val key, value
    cdef int64_t ledger, deleted_ms
    cdef int error
    cdef Status status = enter(reader, reader.ledgers)
    if status != OK:
        return status
    error = mdb.cursor_open(reader.txn, reader.index.fences, &fences)
    if error == 0:
        error = mdb.cursor_get(fences, &key, &value, MDB_FIRST)
        while error == 0 and status == OK:
            status = fence_unpack(key.mv_data, key.mv_size, value.mv_data, value.mv_size, &ledger, &deleted_ms)
            if status == OK:
                status = each(context, ledger, deleted_ms)
                error = mdb.cursor_get(fences, &key, &value, MDB_NEXT)
        mdb.cursor_close(fences)
    leave(reader)
    if status == OK and error != MDB_NOTFOUND:
        return IO_ERROR
    return status


cdef Status index_each_run(IndexReader* reader, int64_t ledger, run_fn each, void* context) noexcept nogil:
    cdef StoredRun stored
    cdef IndexRun run
    cdef int64_t entry = 0
    cdef Status status = enter(reader, reader.runs)
    if status != OK:
        return status
    while status == OK:
        status = run_seek(reader.runs, ledger, entry, &stored)
        if status == OK:
            run_describe(&stored, reader.lengths, &run)
            entry = run.first + run.count
            status = each(context, &run)
    leave(reader)
    return OK if status == NO_ENTRY else status


cdef Status index_walk(IndexReader* reader, int64_t* ledger, int64_t* entry, uint32_t most, stored_fn each,
                       void* context) noexcept nogil:
    cdef StoredRun run
    cdef Status status = enter(reader, reader.runs)
    if status != OK:
        return status
    while status == OK and most:
        status = run_from(reader.runs, RunKey(ledger[0], entry[0]), &run)
        if status == OK:
            status = each(context, &run)
            ledger[0] = run.ledger
            entry[0] = run.first + 1
            most -= 1
    leave(reader)
    return status


cdef Status index_stat(IndexReader* reader, IndexStat* stat) noexcept nogil:
    cdef MDB_stat table
    cdef MDB_envinfo info
    cdef int error
    cdef Status status = enter(reader, reader.runs)
    if status != OK:
        return status
    error = mdb.stat(reader.txn, reader.index.locations, &table)
    if error == 0:
        stat.runs = table.ms_entries - 1                # the head is none
        stat.run_pages = table.ms_branch_pages + table.ms_leaf_pages + table.ms_overflow_pages
        stat.page_bytes = table.ms_psize
        error = mdb.stat(reader.txn, reader.index.ledgers, &table)
    if error == 0:
        stat.ledgers = table.ms_entries
        stat.ledger_pages = table.ms_branch_pages + table.ms_leaf_pages + table.ms_overflow_pages
        error = mdb.env_info(reader.index.env, &info)
    leave(reader)
    if error == 0:
        stat.file_bytes = (info.me_last_pgno + 1) * stat.page_bytes
    return mdb_status(error)


# --- the writing thread ---

cdef Status latched(LocationIndex* index, Status status) noexcept nogil:
    """Remember a failed write: what it left behind can no longer be trusted."""
    if status == IO_ERROR:
        bk_store(&index.failed, 1)
    return status


cdef Status written(LocationIndex* index, Status status) noexcept nogil:
    """What a write came to. LMDB answers EIO when a full disk takes only part of one, so the disk itself is asked."""
    if status == NO_SPACE and bk_load(&mdb_full_maps) != index.full_maps:
        index.too_small = True
    if status == IO_ERROR and disk_is_full(index):
        return NO_SPACE
    return latched(index, status)


cdef bint disk_is_full(LocationIndex* index) noexcept nogil:
    cdef statvfs_t disk
    cdef int fd
    if mdb.env_get_fd(index.env, &fd) or fstatvfs(fd, &disk):
        return False
    return disk.f_bavail * disk.f_frsize < FULL_DISK_BYTES


cdef void grow(LocationIndex* index) noexcept nogil:
    """Twice the address space. LMDB replaces the map, so nobody may read meanwhile, and no transaction be open."""
    cdef int64_t deadline = now_ns() + GROW_WAIT_NS
    cdef MDB_envinfo info
    bk_exchange(&index.moving, 1)
    bk_fence()
    while bk_load(&index.inside) and now_ns() < deadline:
        sched_yield()
    if (bk_load(&index.inside) == 0 and mdb.env_info(index.env, &info) == 0
            and mdb.env_set_mapsize(index.env, 2 * info.me_mapsize) == 0):
        index.too_small = False
    bk_store(&index.moving, 0)


cdef Status index_begin(LocationIndex* index) noexcept nogil:
    cdef int error
    if bk_load(&index.failed):
        return IO_ERROR
    if index.txn != NULL:
        return BAD_REQUEST
    if index.too_small:
        grow(index)
    index.full_maps = bk_load(&mdb_full_maps)
    index.broken = OK
    error = mdb.txn_begin(index.env, NULL, 0, &index.txn)
    if error:
        index.txn = NULL
        return latched(index, mdb_status(error))
    index.runs.txn = index.txn
    index.runs.table = index.locations
    error = mdb.cursor_open(index.txn, index.locations, &index.runs.cursor)
    if error:
        index_abort(index)
    return latched(index, mdb_status(error))


cdef Status index_commit(LocationIndex* index) noexcept nogil:
    cdef MDB_txn* txn = index.txn
    if bk_load(&index.failed):
        index_abort(index)
        return IO_ERROR
    if txn == NULL:
        return BAD_REQUEST
    if index.broken != OK:
        index_abort(index)
        return index.broken
    index.txn = NULL
    return written(index, mdb_status(mdb.txn_commit(txn)))


cdef void index_abort(LocationIndex* index) noexcept nogil:
    if index.txn != NULL:
        mdb.txn_abort(index.txn)
        index.txn = NULL


cdef Status ready(LocationIndex* index) noexcept nogil:
    """Whether a put may go on: OK, or why not."""
    if bk_load(&index.failed):
        return IO_ERROR
    return index.broken if index.txn != NULL else BAD_REQUEST


cdef Status noted(LocationIndex* index, Status status) noexcept nogil:
    """A failed put leaves half its work in the transaction, so the commit must fail too."""
    status = written(index, status)
    if status != OK and status != BAD_REQUEST:
        index.broken = status
    return status


cdef Status index_put_ledger(LocationIndex* index, const LedgerRecord* record) noexcept nogil:
    cdef uint8_t[LEDGER_KEY_BYTES] key
    cdef MDB_val k, v
    cdef Status status = ready(index)
    if status != OK:
        return status
    if record.key_size > STORED_KEY_MAX or record.lac_size > STORED_LAC_MAX:
        return BAD_REQUEST
    store_i64(key, record.ledger)
    k.mv_size, k.mv_data = LEDGER_KEY_BYTES, key
    v.mv_size, v.mv_data = ledger_packed_size(record), NULL
    status = mdb_status(mdb.put(index.txn, index.ledgers, &k, &v, MDB_RESERVE))
    if status == OK:
        ledger_pack(record, key, <uint8_t*> v.mv_data)
    return noted(index, status)


cdef Status index_put_fence(LocationIndex* index, int64_t ledger, int64_t deleted_ms) noexcept nogil:
    cdef uint8_t[LEDGER_KEY_BYTES] key
    cdef uint8_t[FENCE_VALUE_BYTES] value
    cdef MDB_val k, v
    cdef Status status = ready(index)
    if status != OK:
        return status
    fence_pack(ledger, deleted_ms, key, value)
    k.mv_size, k.mv_data = LEDGER_KEY_BYTES, key
    v.mv_size, v.mv_data = FENCE_VALUE_BYTES, value
    return noted(index, mdb_status(mdb.put(index.txn, index.fences, &k, &v, 0)))


cdef Status remove(LocationIndex* index, MDB_dbi table, int64_t ledger) noexcept nogil:
    """What a table says of a ledger, if anything."""
    cdef uint8_t[LEDGER_KEY_BYTES] key
    cdef MDB_val k
    cdef Status status
    store_i64(key, ledger)
    k.mv_size, k.mv_data = LEDGER_KEY_BYTES, key
    status = mdb_status(mdb.remove(index.txn, table, &k, NULL))
    return OK if status == NO_ENTRY else status


cdef Status index_delete_fence(LocationIndex* index, int64_t ledger) noexcept nogil:
    cdef Status status = ready(index)
    return status if status != OK else noted(index, remove(index, index.fences, ledger))


cdef Status index_put_run(LocationIndex* index, const IndexRun* run) noexcept nogil:
    cdef Status status = ready(index)
    return status if status != OK else noted(index, run_put(&index.runs, run))


cdef Status index_append_run(LocationIndex* index, const IndexRun* run) noexcept nogil:
    cdef Status status = ready(index)
    return status if status != OK else noted(index, run_add(&index.runs, run))


cdef Status index_written_last(LocationIndex* index, int64_t ledger, int64_t* entry) noexcept nogil:
    cdef StoredRun run
    cdef Status status = ready(index)
    entry[0] = -1
    if status == OK:
        status = run_last(index.runs.cursor, ledger, &run)
    if status == OK:
        entry[0] = run.first + run.count - 1
    return OK if status == NO_ENTRY else status


cdef Status index_delete_ledger(LocationIndex* index, int64_t ledger) noexcept nogil:
    cdef Status status = ready(index)
    if status != OK:
        return status
    status = remove(index, index.ledgers, ledger)
    if status == OK:
        status = run_delete_ledger(&index.runs, ledger)
    return noted(index, status)


cdef Status index_delete_runs(LocationIndex* index, int64_t ledger, uint32_t* most) noexcept nogil:
    cdef Status status = ready(index)
    if status == OK:
        status = run_delete_some(&index.runs, ledger, most)
    return status if status == FULL else noted(index, status)


cdef Status index_relocate(LocationIndex* index, const Moved* moved, uint64_t* bytes) noexcept nogil:
    cdef Status status = ready(index)
    return status if status != OK else noted(index, run_relocate(&index.runs, moved, bytes))
