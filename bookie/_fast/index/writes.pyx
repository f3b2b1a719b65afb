"""The write transaction of an index and the table of runs: failures are latched, pages guarded, the map enlarged."""
from libc.stdint cimport INT64_MAX, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from bookie._fast.base.cursor cimport store_i64
from bookie._fast.base.lmdb_c cimport MDB_dbi, MDB_envinfo, MDB_stat, MDB_txn, MDB_val, mdb, mdb_full_maps, mdb_status
from bookie._fast.base.short_wait cimport wait_shortly
from bookie._fast.base.sync cimport bk_exchange, bk_fence, bk_load, bk_store, now_ns, wall_ns
from bookie._fast.base.types cimport BAD_REQUEST, CORRUPT, FULL, IO_ERROR, NO_ENTRY, NO_SPACE, OK
from bookie._fast.index.codec cimport RUN_KEY_BYTES, RUN_SLOTS_MAX, StoredRun
from bookie._fast.index.commit_value cimport COMMIT_KEY, COMMIT_KEY_BYTES, COMMIT_VALUE_BYTES, CommitValue, commit_pack
from bookie._fast.index.damage cimport damage_note
from bookie._fast.index.guard cimport (
    TABLE_DOUBTS,
    TABLE_FENCES,
    TABLE_LEDGERS,
    TABLE_LOCATIONS,
    TABLES,
    guard_begin,
    guard_learn,
    guard_range,
)
from bookie._fast.index.lmdb_pages cimport NO_PAGE, Tree
from bookie._fast.index.snapshot cimport snapshots_publish
from bookie._fast.index.table cimport (
    run_add,
    run_delete_some,
    run_describe,
    run_last,
    run_put_some,
    run_relocate,
    run_seek,
)

cdef extern from "<sys/statvfs.h>" nogil:
    struct statvfs_t "statvfs":
        uint64_t f_bavail
        uint64_t f_frsize
    int fstatvfs(int, statvfs_t*) noexcept

cdef enum:
    GROW_WAIT_NS = 100000000                # how long to wait for readers; then the next transaction tries again
    FULL_DISK_BYTES = 1 << 20               # with less than this free, a short write is taken for a full disk


cdef Status latched(LocationIndex* index, Status status) noexcept nogil:
    """Remember a failed write, after which the file cannot be trusted."""
    if status == IO_ERROR:
        bk_store(&index.failed, 1)
    return status


cdef Status written(LocationIndex* index, Status status) noexcept nogil:
    """Return the result of a write. LMDB returns EIO if a full disk takes only part of one, so ask the disk itself."""
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
    """Double the address space. LMDB replaces the map, so no reads may be in progress and no transaction open."""
    cdef int64_t deadline = now_ns() + GROW_WAIT_NS
    cdef MDB_envinfo info
    cdef uint32_t looks = 0
    bk_exchange(&index.moving, 1)
    bk_fence()
    while bk_load(&index.inside) and now_ns() < deadline:
        wait_shortly(&looks)
    if (bk_load(&index.inside) == 0 and mdb.env_info(index.env, &info) == 0
            and mdb.env_set_mapsize(index.env, 2 * info.me_mapsize) == 0):
        index.too_small = False
    bk_store(&index.moving, 0)


cdef Status index_begin(LocationIndex* index) noexcept nogil:
    cdef int error
    cdef Status status
    if bk_load(&index.failed):
        return IO_ERROR
    if index.txn != NULL:
        return BAD_REQUEST
    if index.too_small:
        grow(index)
    # Without a snapshot, the way to the runs was found damaged after the last commit.
    status = guard_begin(&index.guard) if index.snapshots.latest != NULL else CORRUPT
    if status == CORRUPT:
        damage_note(&index.damage, -1)
    if status != OK:
        return latched(index, status)
    index.full_maps = bk_load(&mdb_full_maps)
    index.broken = OK
    index.wrote = False
    memcpy(index.sums, index.committed_sums, sizeof(index.sums))
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


cdef uint64_t index_run_leaves(LocationIndex* index) noexcept nogil:
    cdef MDB_stat stat
    return stat.ms_leaf_pages if mdb.stat(index.txn, index.locations, &stat) == 0 else 0


cdef Status index_commit(LocationIndex* index) noexcept nogil:
    cdef MDB_txn* txn = index.txn
    cdef MDB_stat[TABLES] wanted
    cdef uint64_t before = index.guard.meta.transaction
    cdef int64_t begun_ns = wall_ns()
    cdef Status status
    cdef bint lost
    if bk_load(&index.failed):
        index_abort(index)
        return IO_ERROR
    if txn == NULL:
        return BAD_REQUEST
    if index.broken != OK:
        index_abort(index)
        return index.broken
    index.txn = NULL
    if index.wrote:
        tables_stat(index, txn, wanted)
        status = written(index, mdb_status(commit_numbered(index, txn, begun_ns)))
        if status != OK:
            mdb.txn_abort(txn)
            return status
    status = written(index, mdb_status(mdb.txn_commit(txn)))
    if status != OK:
        return status
    memcpy(index.committed_sums, index.sums, sizeof(index.sums))
    status = guard_learn(&index.guard, index.guard.file.fd)
    # The disk may have lost the meta page, and so the whole commit, or another page, whatever else it has damaged.
    lost = index.guard.stale or (index.guard.found and index.guard.meta.transaction == before)
    if index.guard.roots_known:
        # A commit with the same number may have been begun before, and have left the page.
        lost |= index.guard.commit.begun_ns != begun_ns or not tables_hold(index, wanted)
    if index.wrote and lost:
        return latched(index, IO_ERROR)
    if not publish(index, status):
        damage_note(&index.damage, -1)          # the commit itself is durable; the next transaction will not begin
    return OK


cdef int commit_numbered(LocationIndex* index, MDB_txn* txn, int64_t begun_ns) noexcept nogil:
    """Put number, time and sums of this commit into the main tree, whose root it writes anyway. Return LMDB's code."""
    cdef uint8_t[COMMIT_VALUE_BYTES] packed
    cdef CommitValue commit
    cdef MDB_val key, value
    commit.number = index.guard.meta.transaction + 1
    commit.begun_ns = begun_ns
    memcpy(commit.sums, index.sums, sizeof(index.sums))
    commit_pack(&commit, packed)
    key.mv_size, key.mv_data = COMMIT_KEY_BYTES, <void*> COMMIT_KEY
    value.mv_size, value.mv_data = COMMIT_VALUE_BYTES, packed
    return mdb.put(txn, index.main, &key, &value, 0)


cdef void tables_stat(LocationIndex* index, MDB_txn* txn, MDB_stat* wanted) noexcept nogil:
    """Describe what the tables are in a transaction that was not committed yet. It cannot fail: they are open."""
    cdef MDB_dbi[TABLES] tables
    cdef uint32_t table
    tables[TABLE_LOCATIONS], tables[TABLE_LEDGERS] = index.locations, index.ledgers
    tables[TABLE_FENCES], tables[TABLE_DOUBTS] = index.fences, index.doubtful
    for table in range(TABLES):
        memset(&wanted[table], 0, sizeof(MDB_stat))
        mdb.stat(txn, tables[table], &wanted[table])


cdef bint tables_hold(LocationIndex* index, const MDB_stat* wanted) noexcept nogil:
    """Return whether the file has the tables as they were committed.

    A page whose write was lost may hold an older state of itself: here, the root of the main tree, that of all tables.
    """
    cdef const Tree* tree
    cdef uint64_t pages
    cdef uint32_t table
    for table in range(TABLES):
        tree = &index.guard.tables[table]
        if tree.root == <uint64_t> NO_PAGE:
            if wanted[table].ms_entries:
                return False
            continue
        pages = wanted[table].ms_branch_pages + wanted[table].ms_leaf_pages + wanted[table].ms_overflow_pages
        if tree.entries != wanted[table].ms_entries or tree.pages != pages:
            return False
    return True


cdef bint index_publish(LocationIndex* index) noexcept nogil:
    return publish(index, guard_learn(&index.guard, index.guard.file.fd))


cdef bint publish(LocationIndex* index, Status learned) noexcept nogil:
    if learned == OK:
        return snapshots_publish(&index.snapshots, &index.guard)
    index.guard.sums = NULL
    snapshots_publish(&index.snapshots, NULL)
    return False


cdef void index_abort(LocationIndex* index) noexcept nogil:
    if index.txn != NULL:
        mdb.txn_abort(index.txn)
        index.txn = NULL


cdef Status index_ready(LocationIndex* index) noexcept nogil:
    """Return OK if a put may begin, else the reason why not."""
    if bk_load(&index.failed):
        return IO_ERROR
    return index.broken if index.txn != NULL else BAD_REQUEST


cdef Status index_noted(LocationIndex* index, Status status) noexcept nogil:
    """Record the result of a put. A failed one leaves half its work in the transaction: the commit must fail too."""
    status = written(index, status)
    if status == CORRUPT:
        damage_note(&index.damage, -1)
    if status != OK and status != BAD_REQUEST:
        index.broken = status
    return status


cdef Status guarded(LocationIndex* index, int64_t ledger, int64_t first, int64_t last) noexcept nogil:
    """Check that the pages that hold these runs of a ledger, and their neighbours, are sound."""
    cdef uint8_t[RUN_KEY_BYTES] low
    cdef uint8_t[RUN_KEY_BYTES] high
    cdef Status status = index_ready(index)
    if status != OK:
        return status
    store_i64(low, ledger)
    store_i64(low + 8, max(first, <int64_t> 0))
    store_i64(high, ledger)
    store_i64(high + 8, last)
    return index_noted(index, guard_range(&index.guard, TABLE_LOCATIONS, low, high, RUN_KEY_BYTES))


cdef Status index_put_run(LocationIndex* index, const IndexRun* run) noexcept nogil:
    cdef uint32_t put
    return index_put_some(index, run, 1, &put)


cdef Status index_put_some(LocationIndex* index, const IndexRun* runs, uint32_t count, uint32_t* put) noexcept nogil:
    cdef const IndexRun* last = &runs[count - 1]
    cdef Status status = guarded(index, runs.ledger, runs.first - RUN_SLOTS_MAX, last.first + last.count)
    if status == OK:
        status = index_noted(index, run_put_some(&index.runs, runs, count, put))
        index.wrote |= status == OK
    return status


cdef Status index_append_run(LocationIndex* index, const IndexRun* run) noexcept nogil:
    cdef Status status = guarded(index, run.ledger, run.first, run.first)
    if status == OK:
        status = index_noted(index, run_add(&index.runs, run))
        index.wrote |= status == OK
    return status


cdef Status index_written_last(LocationIndex* index, int64_t ledger, int64_t* entry) noexcept nogil:
    cdef StoredRun run
    cdef Status status = guarded(index, ledger, INT64_MAX, INT64_MAX)
    entry[0] = -1
    if status == OK:
        status = run_last(index.runs.cursor, ledger, &run)
    if status == OK:
        entry[0] = run.first + run.count - 1
    return OK if status == NO_ENTRY else status


cdef Status index_written_run(LocationIndex* index, int64_t ledger, int64_t entry, IndexRun* run) noexcept nogil:
    cdef StoredRun stored
    cdef Status status = guarded(index, ledger, entry - RUN_SLOTS_MAX, entry)
    if status == OK:
        status = run_seek(index.runs.cursor, ledger, entry, &stored)
    if status == OK:
        run_describe(&stored, index.runs.old_lengths, run)
    return status


cdef Status index_delete_runs(LocationIndex* index, int64_t ledger, uint32_t* most) noexcept nogil:
    cdef uint32_t before = most[0]
    cdef Status status = guarded(index, ledger, 0, INT64_MAX)
    if status == OK:
        status = run_delete_some(&index.runs, ledger, most)
        index.wrote |= most[0] != before or status == FULL
    return status if status == FULL else index_noted(index, status)


cdef Status index_relocate(LocationIndex* index, const Moved* moved, uint64_t* bytes) noexcept nogil:
    cdef Status status = guarded(index, moved.ledger, moved.first - RUN_SLOTS_MAX, moved.last)
    if status == OK:
        status = index_noted(index, run_relocate(&index.runs, moved, bytes))
        index.wrote |= status == OK
    return status
