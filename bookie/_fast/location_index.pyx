"""The location index on LMDB: lookups by any thread through its own reader, writes by one thread in one transaction.

An IndexReader owns a read transaction that is renewed for each call and reset after it, so that no old pages stay
pinned. The LocationIndex owns the environment, the write transaction and the scratch of the writing thread.
"""
from libc.errno cimport EIO, ENAMETOOLONG, ENOENT, ENOMEM, ENOSPC, errno
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.stdio cimport SEEK_END, snprintf
from libc.stdlib cimport calloc, free
from libc.string cimport memset
from posix.fcntl cimport O_RDONLY, open
from posix.unistd cimport close, lseek

from bookie._fast.cursor cimport load_i64
from bookie._fast.index_damage cimport damage_init, damage_note
from bookie._fast.index_doubts cimport doubt_unpack, doubts_add, doubts_free, doubts_hold, doubts_init
from bookie._fast.index_guard cimport TABLE_LEDGERS, TABLES, guard_free, guard_init, guard_learn, guard_whole
from bookie._fast.index_state cimport INDEX_READERS_MAX
from bookie._fast.lmdb_c cimport (
    MDB_CORRUPTED,
    MDB_CREATE,
    MDB_FIRST,
    MDB_INVALID,
    MDB_NEXT,
    MDB_NORDAHEAD,
    MDB_NOTFOUND,
    MDB_NOTLS,
    MDB_RDONLY,
    MDB_cursor,
    MDB_env,
    MDB_envinfo,
    MDB_stat,
    MDB_txn,
    MDB_val,
    mdb,
    mdb_status,
)
from bookie._fast.run_codec cimport (
    LEDGER_KEY_BYTES,
    StoredRun,
    fence_unpack,
    ledger_forgive,
    ledger_unpack,
    run_bytes,
    run_length,
)
from bookie._fast.run_key cimport RunKey
from bookie._fast.run_table cimport run_describe, run_from, run_last, run_seek, run_spanning
from bookie._fast.run_upgrade cimport Upgrade, run_upgrade_some
from bookie._fast.sync cimport (
    bk_add,
    bk_exchange,
    bk_fence,
    bk_load,
    bk_store,
    pthread_mutex_init,
    pthread_mutex_lock,
    pthread_mutex_unlock,
)
from bookie._fast.types cimport CORRUPT, END, IO_ERROR, NO_ENTRY, NO_MEMORY, NO_SPACE, OK, Status

cdef extern from "<sched.h>" nogil:
    int sched_yield() noexcept

cdef extern from "<fcntl.h>" nogil:
    int O_CLOEXEC

cdef enum:
    PATH_BYTES = 4200


# --- opening ---

cdef LocationIndex* index_open(const char* path, uint64_t map_bytes, int* error) noexcept nogil:
    cdef LocationIndex* index = <LocationIndex*> calloc(1, sizeof(LocationIndex))
    cdef int fd
    error[0] = ENOMEM
    if index == NULL:
        return NULL
    pthread_mutex_init(&index.reader_lock, NULL)
    damage_init(&index.damage)
    if not doubts_init(&index.doubts):
        free(index)
        return NULL
    guard_init(&index.guard)
    error[0] = look_first(index, path)
    if error[0] == 0:
        error[0] = open_environment(index, path, map_bytes)
    if error[0] == 0:
        error[0] = open_tables(index)
    if error[0] == 0:
        error[0] = mdb.env_get_fd(index.env, &fd)
    if error[0] == 0 and guard_learn(&index.guard, fd) != OK:
        error[0] = MDB_CORRUPTED
    if error[0] == 0:
        error[0] = upgrade_runs(index)
    if error[0] == 0:
        return index
    index_close(index)
    return NULL


cdef int look_first(LocationIndex* index, const char* path) noexcept nogil:
    """LMDB would believe what it finds."""
    cdef char name[PATH_BYTES]
    cdef Status status
    cdef uint32_t table
    cdef int fd
    if snprintf(name, PATH_BYTES, "%s/data.mdb", path) >= PATH_BYTES:
        return ENAMETOOLONG
    fd = open(name, O_RDONLY | O_CLOEXEC)
    if fd < 0:
        return 0 if errno == ENOENT else errno
    status = guard_learn(&index.guard, fd) if lseek(fd, 0, SEEK_END) > 0 else END
    for table in range(TABLE_LEDGERS, TABLES):      # they are read whole at the start
        if status == OK:
            status = guard_whole(&index.guard, table)
    close(fd)
    if status == END:
        return 0
    if status == NO_MEMORY or status == IO_ERROR:
        return ENOMEM if status == NO_MEMORY else EIO
    return 0 if status == OK else MDB_INVALID if index.guard.file.fd < 0 else MDB_CORRUPTED


cdef int open_environment(LocationIndex* index, const char* path, uint64_t map_bytes) noexcept nogil:
    cdef int dead
    cdef int error = mdb.env_create(&index.env)
    if error == 0:
        error = mdb.env_set_mapsize(index.env, map_bytes)
    if error == 0:
        error = mdb.env_set_maxdbs(index.env, 8)
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
        error = mdb.dbi_open(txn, b"doubts", MDB_CREATE, &index.doubtful)
    if error == 0:
        error = load_doubts(index, txn)
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


cdef int load_doubts(LocationIndex* index, MDB_txn* txn) noexcept nogil:
    """A doubt that is damaged is one: nothing but its key counts."""
    cdef MDB_cursor* cursor
    cdef MDB_val key, value
    cdef int64_t ledger
    cdef bint lasting = False
    cdef int error = mdb.cursor_open(txn, index.doubtful, &cursor)
    if error:
        return error
    error = mdb.cursor_get(cursor, &key, &value, MDB_FIRST)
    while error == 0:
        if doubt_unpack(key.mv_data, key.mv_size, value.mv_data, value.mv_size, &ledger, &lasting) != OK:
            damage_note(&index.damage, -1)
            ledger = load_i64(key.mv_data) if key.mv_size == LEDGER_KEY_BYTES else -1
        if not doubts_add(&index.doubts, ledger, lasting):
            error = ENOMEM
            break
        error = mdb.cursor_get(cursor, &key, &value, MDB_NEXT)
    mdb.cursor_close(cursor)
    return 0 if error == MDB_NOTFOUND else error


cdef void index_close(LocationIndex* index) noexcept nogil:
    if index.txn != NULL:
        index_abort(index)
    if index.env != NULL:
        mdb.env_close(index.env)
    doubts_free(&index.doubts)
    guard_free(&index.guard)
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
    cdef bint opened
    if bk_load(&index.failed):
        return NULL
    reader = <IndexReader*> calloc(1, sizeof(IndexReader))
    if reader == NULL:
        return NULL
    reader.index = index
    go_in(index)
    pthread_mutex_lock(&index.reader_lock)
    reader.next_reader = index.readers
    index.readers = reader
    pthread_mutex_unlock(&index.reader_lock)
    opened = open_reader(reader)
    if opened:
        mdb.txn_reset(reader.txn)
    bk_add(&index.inside, -1)
    if not opened:
        index_reader_free(reader)
        return NULL
    return reader


cdef bint open_reader(IndexReader* reader) noexcept nogil:
    """A read transaction of the present environment."""
    if (mdb.txn_begin(reader.index.env, NULL, MDB_RDONLY, &reader.txn) == 0
            and mdb.cursor_open(reader.txn, reader.index.locations, &reader.runs) == 0
            and mdb.cursor_open(reader.txn, reader.index.ledgers, &reader.ledgers) == 0):
        return True
    close_reader(reader)
    return False


cdef void close_reader(IndexReader* reader) noexcept nogil:
    if reader.runs != NULL:
        mdb.cursor_close(reader.runs)
    if reader.ledgers != NULL:
        mdb.cursor_close(reader.ledgers)
    if reader.txn != NULL:
        mdb.txn_abort(reader.txn)
    reader.txn = NULL
    reader.runs = reader.ledgers = NULL


cdef void index_reader_free(IndexReader* reader) noexcept nogil:
    cdef LocationIndex* index = reader.index
    cdef IndexReader** link = &index.readers
    go_in(index)
    pthread_mutex_lock(&index.reader_lock)
    while link[0] != reader:
        link = &link[0].next_reader
    link[0] = reader.next_reader
    pthread_mutex_unlock(&index.reader_lock)
    close_reader(reader)
    bk_add(&index.inside, -1)
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


cdef Status enter(IndexReader* reader, MDB_cursor** cursor) noexcept nogil:
    """Renew the transaction on the latest commit; on OK the caller leaves it."""
    go_in(reader.index)
    if bk_load(&reader.index.failed):
        bk_add(&reader.index.inside, -1)
        return IO_ERROR
    if reader.txn == NULL:                      # the environment was replaced since
        if open_reader(reader):
            return OK
        bk_add(&reader.index.inside, -1)
        return IO_ERROR
    if mdb.txn_renew(reader.txn):
        bk_add(&reader.index.inside, -1)
        return IO_ERROR
    if mdb.cursor_renew(reader.txn, cursor[0]):
        leave(reader)
        return IO_ERROR
    return OK


cdef void leave(IndexReader* reader) noexcept nogil:
    mdb.txn_reset(reader.txn)
    bk_add(&reader.index.inside, -1)


cdef Status told(IndexReader* reader, int64_t ledger, Status status) noexcept nogil:
    """Leave with what is true outside: damage is noted, and nothing denied of a ledger that lost runs."""
    leave(reader)
    if status == CORRUPT or status == IO_ERROR:
        damage_note(&reader.index.damage, ledger)
    if status == NO_ENTRY and doubts_hold(&reader.index.doubts, ledger):
        return IO_ERROR
    return status


cdef Status index_lookup(IndexReader* reader, int64_t ledger, int64_t entry, IndexHit* hit) noexcept nogil:
    cdef StoredRun run
    cdef Status status
    if entry < 0:
        return NO_ENTRY
    status = enter(reader, &reader.runs)
    if status != OK:
        return status
    status = run_spanning(reader.runs, ledger, entry, &run)
    if status == OK and run_length(&run, <uint32_t> (entry - run.first)) == 0:
        status = NO_ENTRY
    if status == OK:
        fill_hit(&run, <uint32_t> (entry - run.first), hit)
    return told(reader, ledger, status)


cdef Status index_next(IndexReader* reader, int64_t ledger, int64_t entry, IndexHit* hit) noexcept nogil:
    cdef StoredRun run
    cdef uint32_t slot = 0
    cdef Status status = enter(reader, &reader.runs)
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
        if hit.entry > entry and doubts_hold(&reader.index.doubts, ledger):
            status = NO_ENTRY                   # what was lost may lie before it
    return told(reader, ledger, status)


cdef Status index_run_at(IndexReader* reader, int64_t ledger, int64_t entry, IndexRun* run) noexcept nogil:
    cdef StoredRun stored
    cdef Status status = enter(reader, &reader.runs)
    if status != OK:
        return status
    status = run_seek(reader.runs, ledger, entry, &stored)
    if status == OK:
        run_describe(&stored, reader.lengths, run)
        if run.first > entry and doubts_hold(&reader.index.doubts, ledger):
            status = NO_ENTRY
    return told(reader, ledger, status)


cdef Status index_last(IndexReader* reader, int64_t ledger, int64_t* entry) noexcept nogil:
    cdef StoredRun run
    cdef Status status = enter(reader, &reader.runs)
    if status != OK:
        return status
    status = run_last(reader.runs, ledger, &run)
    if status == OK:
        entry[0] = run.first + run.count - 1
        if doubts_hold(&reader.index.doubts, ledger):
            status = NO_ENTRY                   # what was lost may lie behind it
    return told(reader, ledger, status)


cdef Status index_each_ledger(IndexReader* reader, ledger_fn each, void* context, bint forgiving) noexcept nogil:
    cdef LedgerRecord record
    cdef MDB_val key, value
    cdef int error
    cdef Status status = enter(reader, &reader.ledgers)
    if status != OK:
        return status
    error = mdb.cursor_get(reader.ledgers, &key, &value, MDB_FIRST)
    while error == 0 and status == OK:
        status = ledger_unpack(key.mv_data, key.mv_size, value.mv_data, value.mv_size, &record)
        if status == CORRUPT and forgiving:
            status = ledger_forgive(key.mv_data, key.mv_size, &record)
        if status == OK:
            status = each(context, &record)
            error = mdb.cursor_get(reader.ledgers, &key, &value, MDB_NEXT)
    if status == OK and error != MDB_NOTFOUND:
        status = IO_ERROR
    return told(reader, -1, status)


cdef Status index_each_fence(IndexReader* reader, fence_fn each, void* context) noexcept nogil:
    """At the start alone, so its cursor is not kept."""
    cdef MDB_cursor* fences
    cdef MDB_val key, value
    cdef int64_t ledger, deleted_ms
    cdef int error
    cdef Status status = enter(reader, &reader.ledgers)
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
    if status == OK and error != MDB_NOTFOUND:
        status = IO_ERROR
    return told(reader, -1, status)


cdef Status index_each_run(IndexReader* reader, int64_t ledger, run_fn each, void* context) noexcept nogil:
    cdef StoredRun stored
    cdef IndexRun run
    cdef int64_t entry = 0
    cdef Status status = enter(reader, &reader.runs)
    if status != OK:
        return status
    while status == OK:
        status = run_seek(reader.runs, ledger, entry, &stored)
        if status == OK:
            run_describe(&stored, reader.lengths, &run)
            entry = run.first + run.count
            status = each(context, &run)
    status = told(reader, ledger, status)
    return OK if status == NO_ENTRY else status


cdef Status index_walk(IndexReader* reader, int64_t* ledger, int64_t* entry, uint32_t most, stored_fn each,
                       void* context) noexcept nogil:
    cdef StoredRun run
    cdef Status status = enter(reader, &reader.runs)
    if status != OK:
        return status
    while status == OK and most:
        status = run_from(reader.runs, RunKey(ledger[0], entry[0]), &run)
        if status == OK:
            status = each(context, &run)
            ledger[0] = run.ledger
            entry[0] = run.first + 1
            most -= 1
    return told(reader, -1, status)


cdef Status index_stat(IndexReader* reader, IndexStat* stat) noexcept nogil:
    cdef MDB_stat table
    cdef MDB_envinfo info
    cdef int error
    cdef Status status = enter(reader, &reader.runs)
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


# --- another environment ---

cdef void index_replace(LocationIndex* index, LocationIndex* fresh) noexcept nogil:
    cdef IndexReader* reader
    cdef MDB_env* old = index.env
    bk_exchange(&index.moving, 1)
    bk_fence()
    while bk_load(&index.inside):
        sched_yield()
    reader = index.readers                      # nobody comes or goes: who does goes in
    while reader != NULL:
        close_reader(reader)
        reader = reader.next_reader
    index.env = fresh.env
    index.locations, index.ledgers, index.fences = fresh.locations, fresh.ledgers, fresh.fences
    guard_free(&index.guard)
    index.guard = fresh.guard
    guard_init(&fresh.guard)
    index.doubtful = fresh.doubtful
    index.too_small = False
    bk_store(&index.moving, 0)
    mdb.env_close(old)
    fresh.env = NULL
    index_close(fresh)
