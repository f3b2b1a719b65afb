"""Opening and closing the environment of an index and its tables."""
from libc.errno cimport EIO, ENAMETOOLONG, ENOENT, ENOMEM, ENOSPC, errno
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.stdio cimport SEEK_END, snprintf
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy, memset
from posix.fcntl cimport O_RDONLY, open
from posix.unistd cimport close, lseek

from bookie._fast.base.cursor cimport load_i64
from bookie._fast.base.file cimport PRIVATE_MODE
from bookie._fast.base.lmdb_c cimport (
    MDB_CORRUPTED,
    MDB_CREATE,
    MDB_FIRST,
    MDB_INVALID,
    MDB_NEXT,
    MDB_NORDAHEAD,
    MDB_NOTFOUND,
    MDB_NOTLS,
    MDB_cursor,
    MDB_dbi,
    MDB_txn,
    MDB_val,
    mdb,
)
from bookie._fast.base.sync cimport wall_ns
from bookie._fast.base.types cimport CORRUPT, END, IO_ERROR, NO_MEMORY, NO_SPACE, OK, Status
from bookie._fast.index.codec cimport LEDGER_KEY_BYTES
from bookie._fast.index.damage cimport damage_init, damage_note
from bookie._fast.index.doubts cimport doubt_unpack, doubts_add, doubts_free, doubts_init
from bookie._fast.index.guard cimport (
    TABLES,
    TABLE_DOUBTS,
    TABLE_FENCES,
    TABLE_LEDGERS,
    TABLE_LOCATIONS,
    TABLE_NAMES,
    WHOLE_TABLE_PAGES_MAX,
    guard_free,
    guard_init,
    guard_learn,
    guard_sum,
    guard_whole,
)
from bookie._fast.index.lmdb_pages cimport NO_PAGE
from bookie._fast.index.pending cimport pending_free, pending_init
from bookie._fast.index.snapshot cimport snapshots_free, snapshots_init
from bookie._fast.index.state cimport INDEX_READERS_MAX
from bookie._fast.index.upgrade cimport Upgrade, run_upgrade_some
from bookie._fast.index.writes cimport commit_numbered, index_abort, index_begin, index_commit, index_publish

cdef extern from "<fcntl.h>" nogil:
    int O_CLOEXEC
    int POSIX_FADV_RANDOM, POSIX_FADV_WILLNEED
    int posix_fadvise(int, int64_t, int64_t, int) noexcept

cdef enum:
    PATH_BYTES = 4200
    WHOLE_FILE_PAGES_MAX = 65536  # of a file that is read as a whole, to count what is in a large table


cdef LocationIndex* index_open(const char* path, uint64_t map_bytes, int* error) noexcept nogil:
    cdef LocationIndex* index = <LocationIndex*> calloc(1, sizeof(LocationIndex))
    cdef int fd
    error[0] = ENOMEM
    if index == NULL:
        return NULL
    damage_init(&index.damage)
    pending_init(&index.pending)
    if not doubts_init(&index.doubts):
        free(index)
        return NULL
    guard_init(&index.guard)
    snapshots_init(&index.snapshots)
    error[0] = look_first(index, path)
    if error[0] == 0:
        memcpy(index.sums, index.committed_sums, sizeof(index.sums))
        error[0] = open_environment(index, path, map_bytes)
    if error[0] == 0:
        error[0] = open_tables(index)
    if error[0] == 0:
        error[0] = mdb.env_get_fd(index.env, &fd)
    if error[0] == 0:
        posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM)
        index.guard.file.fd = fd
        if not index_publish(index):
            error[0] = MDB_CORRUPTED
    if error[0] == 0:
        error[0] = upgrade_runs(index)
    if error[0] == 0:
        return index
    index_close(index)
    return NULL


cdef int look_first(LocationIndex* index, const char* path) noexcept nogil:
    """Check the file before LMDB opens and trusts it. Return 0, an errno or an LMDB code."""
    cdef char name[PATH_BYTES]
    cdef Status status
    cdef uint32_t table
    cdef uint64_t sum_
    cdef int fd
    if snprintf(name, PATH_BYTES, "%s/data.mdb", path) >= PATH_BYTES:
        return ENAMETOOLONG
    fd = open(name, O_RDONLY | O_CLOEXEC)
    if fd < 0:
        return 0 if errno == ENOENT else errno
    status = guard_learn(&index.guard, fd) if lseek(fd, 0, SEEK_END) > 0 else END
    if status == OK:
        status = guard_sum(&index.guard)
    for table in range(TABLES):
        # The other tables are read whole anyway. A leaf whose write was lost may hold an older state of itself, which
        # only the number of values reveals; in a large index, reading all leaves would delay each start.
        if status == OK and table == TABLE_LOCATIONS and index.guard.tables[table].pages > WHOLE_TABLE_PAGES_MAX:
            if index.guard.file.last >= WHOLE_FILE_PAGES_MAX:
                continue
            posix_fadvise(fd, 0, 0, POSIX_FADV_WILLNEED)  # else a disk would move its head for each leaf
        if status == OK:
            status = guard_whole(&index.guard, table, &sum_)
        if status == OK and table != TABLE_LOCATIONS:
            index.committed_sums[table - TABLE_LEDGERS] = sum_
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
        # The kernel's readahead around each page of a random look-up would mostly bring pages of other ledgers.
        error = mdb.env_open(index.env, path, MDB_NOTLS | MDB_NORDAHEAD, PRIVATE_MODE)
    if error == 0:
        error = mdb.reader_check(index.env, &dead)
    return error


cdef int open_table(LocationIndex* index, MDB_txn* txn, uint32_t which, MDB_dbi* table, bint* made) noexcept nogil:
    """Open a table, or create it: in a new index, or one of a version without it. EIO if LMDB misses it otherwise."""
    cdef int error = mdb.dbi_open(txn, TABLE_NAMES[which], 0, table)
    if error == MDB_NOTFOUND:
        if index.guard.numbered or index.guard.named & 1 << which:
            return EIO
        made[0] = True
        error = mdb.dbi_open(txn, TABLE_NAMES[which], MDB_CREATE, table)
    return error


cdef int open_tables(LocationIndex* index) noexcept nogil:
    cdef MDB_txn* txn
    cdef bint made = False
    cdef int error = mdb.txn_begin(index.env, NULL, 0, &txn)
    if error:
        return error
    error = mdb.dbi_open(txn, NULL, 0, &index.main)
    if error == 0:
        error = open_table(index, txn, TABLE_LOCATIONS, &index.locations, &made)
    if error == 0:
        error = open_table(index, txn, TABLE_LEDGERS, &index.ledgers, &made)
    if error == 0:
        error = open_table(index, txn, TABLE_FENCES, &index.fences, &made)
    if error == 0:
        error = open_table(index, txn, TABLE_DOUBTS, &index.doubtful, &made)
    if error == 0 and made:
        error = commit_numbered(index, txn, wall_ns())
    if error == 0:
        error = load_doubts(index, txn)
    if error == 0:
        return mdb.txn_commit(txn)
    mdb.txn_abort(txn)
    return error


cdef int upgrade_runs(LocationIndex* index) noexcept nogil:
    """Begin the chain of an empty table, or upgrade one of the first version. Return 0, an errno or an LMDB code."""
    cdef Upgrade upgrade
    cdef Status status = OK
    memset(&upgrade, 0, sizeof(upgrade))
    while status == OK and not upgrade.done:
        status = index_begin(index)
        if status == OK:
            status = run_upgrade_some(&index.runs, &upgrade)
            index.wrote = upgrade.begun or index.guard.tables[TABLE_LOCATIONS].root == <uint64_t> NO_PAGE
        if status == OK:
            status = index_commit(index)
    index_abort(index)
    if status == CORRUPT:
        return MDB_CORRUPTED
    return 0 if status == OK else ENOSPC if status == NO_SPACE else EIO


cdef int load_doubts(LocationIndex* index, MDB_txn* txn) noexcept nogil:
    """Load the doubts into memory. One that is damaged counts by its key alone."""
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
    pending_free(&index.pending)
    snapshots_free(&index.snapshots)
    guard_free(&index.guard)
    free(index)
