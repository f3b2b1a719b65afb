"""Scan, judge, copy in stretches, sync, index, unlink, in this order; no step begins before the previous succeeded."""
from libc.errno cimport ENOENT
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.stdio cimport snprintf
from libc.stdlib cimport free, malloc
from libc.string cimport memset
from posix.fcntl cimport O_RDONLY
from posix.types cimport off_t

from bookie._fast.base.crash_steps cimport STEP_COPIED, STEP_COPY_INDEXED, STEP_COPY_SYNCED, STEP_UNLINKED, step
from bookie._fast.base.fatal cimport fatal_set
from bookie._fast.base.file cimport iovec
from bookie._fast.base.pace cimport pace_destroy, pace_init, pace_take
from bookie._fast.base.planted cimport PLANT_COPY_UNSYNCED, PLANT_OPEN_COLLECTED, PLANT_UNLINK_EARLY, bk_planted
from bookie._fast.base.sync cimport bk_add_relaxed, bk_load, bk_store, pthread_mutex_lock, pthread_mutex_unlock
from bookie._fast.base.types cimport CLOSED, CORRUPT, END, FULL, IO_ERROR, LENGTH_PREFIX, NO_MEMORY, NO_SPACE, OK, TORN
from bookie._fast.entrylog.ids cimport LOG_USER_COMPACTION, log_ids_commit, log_ids_is_open, log_ids_settle
from bookie._fast.entrylog.scan cimport (
    LOG_SPECIAL_LEDGER,
    LogCursor,
    LogRecord,
    log_close,
    log_held,
    log_next,
    log_open,
)
from bookie._fast.entrylog.writer cimport (
    log_buffer,
    log_buffer_free,
    readers_forget,
    writer_append,
    writer_free,
    writer_hurry,
    writer_log_id,
    writer_new,
    writer_rotate,
    writer_size,
    writer_sync,
)
from bookie._fast.index.codec cimport StoredRun, run_bytes
from bookie._fast.index.location cimport (
    index_abort,
    index_begin,
    index_commit,
    index_reader,
    index_reader_free,
    index_relocate,
    index_walk,
)
from bookie._fast.store.gc.liveness cimport (
    DELETED,
    ELSEWHERE,
    HELD,
    LIVE,
    ORPHAN,
    Verdict,
    judge,
    liveness_clear,
    liveness_free,
    liveness_init,
)

cdef extern from "<fcntl.h>" nogil:
    int O_CLOEXEC
    int POSIX_FADV_DONTNEED
    int POSIX_FADV_SEQUENTIAL
    int POSIX_FADV_WILLNEED
    int posix_fadvise(int fd, off_t offset, off_t size, int advice) noexcept

cdef extern from "<unistd.h>" nogil:
    int SEEK_END
    off_t lseek(int fd, off_t offset, int whence) noexcept

cdef enum:
    PATH_BYTES = 4200
    PACE_BYTES = 0x40000         # the scan waits for its pace in steps of this
    AHEAD_BYTES = 0x400000
    FORGET_BYTES = 0x1000000     # scanned bytes are dropped from the page cache in steps of this


cdef Status compaction_init(Compaction* compaction, Storage* stores, Store* store) noexcept nogil:
    compaction.stores = stores
    compaction.store = store
    compaction.progress.log_id = -1
    pace_init(&compaction.pace)
    compaction.buffer = log_buffer()
    compaction.moves = <Moved*> malloc(MOVES_MOST * sizeof(Moved))
    if compaction.buffer == NULL or compaction.moves == NULL:
        return NO_MEMORY
    compaction.writer = writer_new(store.ids, LOG_USER_COMPACTION, compaction.buffer, store.log_bytes_max)
    if compaction.writer == NULL:
        return NO_MEMORY
    compaction.reader = index_reader(store.index)
    if compaction.reader == NULL:
        return IO_ERROR
    return liveness_init(&compaction.liveness, store, compaction.reader)


cdef void compaction_free(Compaction* compaction) noexcept nogil:
    if compaction.stores == NULL or compaction.store.index == NULL:
        return                   # the store was closed before, with everything that this refers to
    liveness_free(&compaction.liveness)
    if compaction.reader != NULL:
        index_reader_free(compaction.reader)
    writer_free(compaction.writer)
    log_buffer_free(compaction.buffer)
    free(compaction.moves)
    pace_destroy(&compaction.pace)
    compaction.stores = NULL


cdef Status compaction_finish(Compaction* compaction) noexcept nogil:
    cdef Status status = writer_rotate(compaction.writer)
    if status == NO_SPACE:
        writer_rotate(compaction.writer)
    elif status != OK:
        fatal_set("compaction: closing its entry log failed", 0)
        return status
    log_ids_settle(compaction.store.ids, LOG_USER_COMPACTION)
    return status


# --- copying ---

cdef void forget_moves(Compaction* compaction) noexcept nogil:
    """Forget copies that are not indexed. They stay in the target log as dead records."""
    compaction.move_count = 0
    compaction.move_bytes = compaction.move_records = 0
    compaction.stretch.bytes = 0


cdef Status give_up(Compaction* compaction, Status status) noexcept nogil:
    """Handle a failed write. Without space the target log ends at its indexed part; a failed disk is fatal."""
    forget_moves(compaction)
    if status == NO_SPACE:
        writer_rotate(compaction.writer)
        log_ids_settle(compaction.store.ids, LOG_USER_COMPACTION)
    elif status == IO_ERROR:
        fatal_set("compaction: writing its entry log or the index failed", 0)
    return status


cdef Status append_stretch(Compaction* compaction) noexcept nogil:
    """Copy the collected stretch; it joins the previous one if both are contiguous in source and target."""
    cdef Moved* stretch = &compaction.stretch
    cdef Moved* last
    cdef iovec part
    cdef Status status
    if stretch.bytes == 0:
        return OK
    if compaction.move_count == MOVES_MOST or compaction.move_bytes >= MOVED_BYTES_MOST:
        status = FULL
    else:
        part.iov_base = <void*> compaction.data
        part.iov_len = stretch.bytes
        status = writer_append(compaction.writer, stretch.ledger, &part, 1, stretch.bytes, &stretch.to_log,
                               &stretch.to_offset)
    if status != OK:
        return status
    last = &compaction.moves[compaction.move_count - 1] if compaction.move_count else NULL
    if (last != NULL and last.ledger == stretch.ledger and last.last < stretch.first
            and last.to_log == stretch.to_log and last.from_offset + last.bytes == stretch.from_offset
            and last.to_offset + last.bytes == stretch.to_offset):
        last.last = stretch.last
        last.bytes += stretch.bytes
    else:
        compaction.moves[compaction.move_count] = stretch[0]
        compaction.move_count += 1
    compaction.move_bytes += stretch.bytes
    compaction.move_records += compaction.stretch_records
    stretch.bytes = 0
    return OK


cdef Status index_moves(Compaction* compaction, Result* result) noexcept nogil:
    """Point the index at the synced copies in one transaction, which excludes flushes."""
    cdef Store* store = compaction.store
    cdef uint64_t bytes = 0
    cdef uint32_t i
    cdef Status status
    pthread_mutex_lock(&store.writing)
    status = index_begin(store.index)
    if status == OK:
        for i in range(compaction.move_count):
            status = index_relocate(store.index, &compaction.moves[i], &bytes)
            if status != OK:
                break
        if status == OK:
            status = index_commit(store.index)
        else:
            index_abort(store.index)
    if status == OK:             # a repair of the index must know it before it begins
        log_ids_commit(store.ids, writer_log_id(compaction.writer), writer_size(compaction.writer))
        log_ids_settle(store.ids, LOG_USER_COMPACTION)
    pthread_mutex_unlock(&store.writing)
    if status == OK:
        result.indexed_bytes += bytes
    return status


cdef Status commit_moves(Compaction* compaction, Result* result) noexcept nogil:
    """Sync and index the copies; after OK they count as moved."""
    cdef Status status
    if compaction.move_count == 0:
        return OK
    step(STEP_COPIED)
    status = OK if bk_planted(PLANT_COPY_UNSYNCED) else writer_sync(compaction.writer)
    if status == OK:
        step(STEP_COPY_SYNCED)
        status = index_moves(compaction, result)
        if status == NO_SPACE:
            status = index_moves(compaction, result)     # if the index's map was full, it is larger now
    if status != OK:
        return give_up(compaction, status)
    step(STEP_COPY_INDEXED)
    result.moved_records += compaction.move_records
    result.moved_bytes += compaction.move_bytes
    bk_add_relaxed(&compaction.progress.moved_bytes, <int64_t> compaction.move_bytes)
    compaction.move_count = 0
    compaction.move_bytes = compaction.move_records = 0
    return OK


cdef Status put_by(Compaction* compaction, Result* result) noexcept nogil:
    """Append the collected stretch, after a commit if the list of moves is full."""
    cdef Status status = append_stretch(compaction)
    if status == FULL:
        status = commit_moves(compaction, result)
        if status == OK:
            status = append_stretch(compaction)
    elif status != OK:
        give_up(compaction, status)
    return status


cdef Status gather_live(Compaction* compaction, uint32_t log_id, const LogRecord* record,
                        Result* result) noexcept nogil:
    """Add the record to the stretch, or begin the next one with it."""
    cdef Moved* stretch = &compaction.stretch
    cdef Status status
    if (stretch.bytes and (stretch.ledger != record.ledger or record.entry <= stretch.last
                           or stretch.from_offset + stretch.bytes != record.offset
                           or stretch.bytes >= STRETCH_BYTES_MOST)):
        status = put_by(compaction, result)
        if status != OK:
            return status
    if stretch.bytes == 0:
        stretch.ledger = record.ledger
        stretch.first = record.entry
        stretch.from_log = log_id
        stretch.from_offset = record.offset
        compaction.data = record.data - LENGTH_PREFIX
        compaction.stretch_records = 0
    stretch.last = record.entry
    stretch.bytes += LENGTH_PREFIX + <uint64_t> record.length
    compaction.stretch_records += 1
    return OK


# --- scanning ---

cdef inline Outcome kept_for(Verdict verdict) noexcept nogil:
    """Return why a log with such a record has to be kept, unless the record is moved."""
    if verdict == LIVE:
        return COLLECT_LIVE
    if verdict == HELD:
        return COLLECT_QUARANTINED
    return COLLECT_ORPHANS if verdict == ORPHAN else COLLECT_DISAGREES


cdef inline void blame(Result* result, Outcome outcome, const LogRecord* record) noexcept nogil:
    result.outcome = outcome
    result.ledger = record.ledger
    result.entry = record.entry
    result.offset = record.offset


cdef Status take(Compaction* compaction, uint32_t log_id, bint move, const LogRecord* record,
                 Result* result) noexcept nogil:
    """Move or drop one record. CLOSED: the log has to be kept, and `result` tells why."""
    cdef Verdict verdict
    cdef Status status = judge(&compaction.liveness, log_id, record, &verdict)
    if status != OK:
        return status
    if verdict == LIVE and move:
        return gather_live(compaction, log_id, record, result)
    if verdict != ELSEWHERE and verdict != DELETED:
        blame(result, kept_for(verdict), record)
        return CLOSED
    result.dropped_records += 1
    result.dropped_bytes += LENGTH_PREFIX + <uint64_t> record.length
    return OK


cdef Status scan(Compaction* compaction, LogCursor* cursor, int fd, uint32_t log_id, bint move,
                 Result* result) noexcept nogil:
    """Go over all records of the log. END or TORN after the last; CLOSED: `result` tells the reason; or an error."""
    cdef LogRecord record
    cdef uint64_t paced = cursor.pos
    cdef uint64_t forgotten = 0
    cdef uint64_t advised = 0
    cdef Status status = OK
    while status == OK:
        if compaction.stretch.bytes and not log_held(cursor):
            status = put_by(compaction, result)      # the window is about to move
            if status != OK:
                return status
        if cursor.pos - paced >= PACE_BYTES:
            bk_store(&compaction.progress.log_done, <int64_t> cursor.pos)
            if not pace_take(&compaction.pace, <int64_t> (cursor.pos - paced)):
                result.outcome = COLLECT_STOPPED
                return CLOSED
            paced = cursor.pos
            if paced + AHEAD_BYTES > advised:
                # Let the kernel read ahead while this thread writes.
                advised = max(advised, cursor.window.base + cursor.window.size)
                posix_fadvise(fd, advised, AHEAD_BYTES, POSIX_FADV_WILLNEED)
                advised += AHEAD_BYTES
            if paced - forgotten >= FORGET_BYTES:
                posix_fadvise(fd, forgotten, paced - forgotten, POSIX_FADV_DONTNEED)
                forgotten = paced
        status = log_next(cursor, &record)
        if status == OK and record.ledger != LOG_SPECIAL_LEDGER:
            status = take(compaction, log_id, move, &record, result)
        elif status == IO_ERROR or status == CORRUPT:
            result.outcome = COLLECT_UNREADABLE
            return CLOSED
    if status == TORN:
        result.torn_at = <int64_t> cursor.pos
    return status


cdef Status scan_and_move(Compaction* compaction, int fd, uint32_t log_id, bint move, Result* result) noexcept nogil:
    """Scan the log. OK: its live records are indexed elsewhere. CLOSED: `result` tells why not."""
    cdef LogCursor cursor
    cdef Status status = log_open(&cursor, compaction.stores.ops, fd, 0)
    cdef Status moved
    if status == OK:
        posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL)
        status = scan(compaction, &cursor, fd, log_id, move, result)
    elif status == IO_ERROR or status == CORRUPT:
        result.outcome = COLLECT_UNREADABLE
        status = CLOSED
    if status == END or status == TORN or (status == CLOSED and result.outcome == COLLECT_STOPPED):
        moved = put_by(compaction, result)
        if moved == OK:
            moved = commit_moves(compaction, result)
        if moved != OK:
            status = moved
    log_close(&cursor)
    if status == NO_SPACE:
        result.outcome = COLLECT_NO_SPACE
    forget_moves(compaction)
    return OK if status == END or status == TORN else CLOSED if status == NO_SPACE else status


# --- removing ---

cdef struct Pointers:
    uint32_t log_id
    uint64_t offset


cdef Status look_for(void* context, const StoredRun* run) noexcept nogil:
    cdef Pointers* wanted = <Pointers*> context
    cdef uint32_t present
    if run.log_id == wanted.log_id and run.offset + run_bytes(run, 0, run.count, &present) > wanted.offset:
        return FULL
    return OK


cdef Status points_into(IndexReader* reader, uint32_t log_id, uint64_t offset, bint* found) noexcept nogil:
    cdef Pointers wanted
    cdef int64_t ledger = 0
    cdef int64_t entry = 0
    cdef Status status = OK
    wanted.log_id = log_id
    wanted.offset = offset
    while status == OK:
        status = index_walk(reader, &ledger, &entry, WALK_RUNS, look_for, &wanted)
    found[0] = status == FULL
    return OK if status == END or status == FULL else status


cdef int open_log(Compaction* compaction, uint32_t log_id, Result* result) noexcept nogil:
    """Open a log that may be collected; return its descriptor, or -1 with the reason in `result`."""
    cdef char path[PATH_BYTES]
    cdef int fd
    cdef off_t size
    if log_ids_is_open(compaction.store.ids, log_id) and not bk_planted(PLANT_OPEN_COLLECTED):
        result.outcome = COLLECT_OPEN
        return -1
    snprintf(path, PATH_BYTES, "%s/%x.log", compaction.store.directory, log_id)
    fd = compaction.stores.ops.open(path, O_RDONLY | O_CLOEXEC, 0)
    if fd < 0:
        result.outcome = COLLECT_GONE if fd == -ENOENT else COLLECT_UNREADABLE
        return -1
    size = lseek(fd, 0, SEEK_END)
    result.file_bytes = <uint64_t> size if size > 0 else 0
    return fd


cdef Status remove_log(Compaction* compaction, uint32_t log_id, int64_t repairs, Result* result) noexcept nogil:
    cdef char path[PATH_BYTES]
    cdef bint repaired
    cdef int rc = 0
    cdef int fd
    snprintf(path, PATH_BYTES, "%s/%x.log", compaction.store.directory, log_id)
    # While it is open, the file only loses its name. Its blocks are freed at the close, which can take a second, and
    # for which no flush should wait.
    fd = compaction.stores.ops.open(path, O_RDONLY | O_CLOEXEC, 0)
    pthread_mutex_lock(&compaction.store.writing)        # no repair begins meanwhile
    repaired = bk_load(&compaction.store.index.damage.repairs) != repairs
    if not repaired:
        rc = compaction.stores.ops.unlink(path)
    pthread_mutex_unlock(&compaction.store.writing)
    if fd >= 0:
        compaction.stores.ops.close(fd)
    if repaired:
        result.outcome = COLLECT_REPAIRED
        return OK
    readers_forget(compaction.store.logs, log_id)
    if rc < 0:
        result.outcome = COLLECT_GONE if rc == -ENOENT else COLLECT_UNREADABLE
        return OK
    step(STEP_UNLINKED)
    result.outcome = COLLECT_UNLINKED
    bk_add_relaxed(&compaction.progress.logs_unlinked, 1)
    bk_add_relaxed(&compaction.progress.bytes_unlinked, <int64_t> result.file_bytes)
    return OK


cdef Status collect_log(Compaction* compaction, uint32_t log_id, bint move, int64_t live_bytes,
                        Result* result) noexcept nogil:
    cdef bint found = False
    cdef Status status
    cdef int fd
    memset(result, 0, sizeof(Result))
    result.torn_at = result.ledger = result.entry = -1
    fd = open_log(compaction, log_id, result)
    if fd < 0:
        return OK
    compaction.repairs = bk_load(&compaction.store.index.damage.repairs)
    if bk_planted(PLANT_UNLINK_EARLY):
        remove_log(compaction, log_id, compaction.repairs, result)
    liveness_clear(&compaction.liveness)
    writer_hurry(compaction.writer, compaction.pace.rate == 0)
    bk_store(&compaction.progress.log_bytes, <int64_t> result.file_bytes)
    bk_store(&compaction.progress.log_done, 0)
    bk_store(&compaction.progress.log_id, log_id)
    status = scan_and_move(compaction, fd, log_id, move, result)
    compaction.stores.ops.close(fd)
    bk_store(&compaction.progress.log_id, -1)
    if status == CLOSED:
        return OK
    if status != OK:
        return status
    if live_bytes < 0 or <uint64_t> live_bytes != result.indexed_bytes:
        status = points_into(compaction.reader, log_id, 0, &found)
        if status != OK:
            return status
    if found:
        # The scan saw no record at a place where the index says that there is one.
        result.outcome = COLLECT_TORN if result.torn_at >= 0 else COLLECT_DISAGREES
        return OK
    bk_add_relaxed(&compaction.progress.dropped_bytes, <int64_t> result.dropped_bytes)
    return remove_log(compaction, log_id, compaction.repairs, result)
