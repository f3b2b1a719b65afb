"""Which log takes an entry, and when it is closed.

Appending makes a log the newest of the active ones, so the logs that the running flush has touched come first.
"""
import os

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdio cimport snprintf
from libc.stdlib cimport bsearch, calloc, free, qsort, realloc

from bookie._fast.base.by_age cimport Aged, ByAge, aged_drop, aged_find, aged_put, aged_renew, by_age_free, by_age_init
from bookie._fast.base.by_ledger cimport Chained, ascending_ids
from bookie._fast.base.cursor cimport store_u32
from bookie._fast.base.file cimport Files, iovec
from bookie._fast.base.op_stats cimport op_note, op_view
from bookie._fast.base.planted cimport PLANT_BORN_COMMITTED, PLANT_GIVE_UP_ALL, bk_planted
from bookie._fast.base.sync cimport bk_add, bk_load, now_ns
from bookie._fast.base.sync_many cimport SYNCS_MOST
from bookie._fast.base.types cimport IO_ERROR, LENGTH_PREFIX, NO_MEMORY, NO_SPACE, OK, Status
from bookie._fast.entrylog.ids cimport (
    LOG_USER_FLUSH,
    LogIds,
    log_ids,
    log_ids_directory,
    log_ids_drop,
    log_ids_free,
    log_ids_is_open,
    log_ids_ops,
    log_ids_publish,
    log_ids_settle_later,
)
from bookie._fast.entrylog.scan cimport log_check
from bookie._fast.entrylog.writer cimport (
    LOG_BUFFER_BYTES,
    EntryLogWriter,
    LogBuffer,
    log_buffer,
    log_buffer_free,
    writer_append,
    writer_bytes,
    writer_end,
    writer_free,
    writer_give_up,
    writer_hurry,
    writer_new,
    writer_one_of_many,
    writer_size,
    writer_sync,
    writer_write_out,
    writers_finish,
    writers_sync,
)

cdef extern from "<errno.h>" nogil:
    int ENOSPC
    int EDQUOT

cdef enum:
    PATH_BYTES = 4096
    IDS_FIRST = 64

cdef struct OpenLog:
    Aged aged                    # ordered by last append; `ledger` is the log's ledger, -1 for the log of all ledgers
    EntryLogWriter* writer       # owned
    int64_t log_id               # of the last append; -1 if there was none
    uint64_t committed           # its bytes that a commit covers; 0 if the log is younger than the last commit
    int64_t appended_ns
    bint touched                 # appended to since the last commit
    OpenLog* next                # in the list of ending logs
    int64_t* reason              # of an ending log: the counter of those that are closed for the same reason

cdef struct IdList:
    # Ids that are kept from one commit to the next. An id for which there is no memory is dropped; all uses tolerate
    # that.
    int64_t* ids
    uint32_t count
    uint32_t room

cdef struct LogSet:
    LogIds* ids
    LogBuffer* buffer
    uint64_t size_limit
    uint32_t active_max
    int64_t expiry_ns
    bint hurry
    OpenLog* common              # the log of all ledgers; NULL if each ledger has its own
    ByAge active                 # logs that take entries
    OpenLog* ending
    uint32_t ending_count
    int64_t newest               # id that `lastId` has to cover; -1 if there is nothing to publish
    IdList born                  # logs created and closed since the last settle
    IdList marks                 # ledgers that expect no more entries
    bint marks_sorted
    Status failed                # NO_SPACE or IO_ERROR
    LogSetStats stats
    LogCounts counts

cdef struct LogCount:
    Aged aged                    # ordered by first log
    int64_t logs


cdef bint log_counts_init(LogCounts* counts, uint32_t most) noexcept nogil:
    """Initialise an empty table. Return False if there is no memory."""
    counts.most = most
    return by_age_init(&counts.counts)


cdef void free_count(Chained* thing) noexcept nogil:
    free(thing)


cdef void log_counts_free(LogCounts* counts) noexcept nogil:
    by_age_free(&counts.counts, free_count)


cdef void end_count(LogCounts* counts, LogCount* count) noexcept nogil:
    aged_drop(&counts.counts, &count.aged)
    op_note(&counts.noted, count.logs, 1)
    free(count)


cdef LogCount* new_count(LogCounts* counts, int64_t ledger) noexcept nogil:
    cdef LogCount* count
    if counts.counts.table.count >= counts.most and counts.counts.oldest != NULL:
        end_count(counts, <LogCount*> counts.counts.oldest)
    count = <LogCount*> calloc(1, sizeof(LogCount))
    if count == NULL:
        return NULL
    count.aged.chained.ledger = ledger
    aged_put(&counts.counts, &count.aged)
    return count


cdef void log_counts_begin(LogCounts* counts, int64_t ledger) noexcept nogil:
    """Count a log that the ledger begins. Without memory it is not counted."""
    cdef LogCount* count = <LogCount*> aged_find(&counts.counts, ledger)
    if count == NULL:
        count = new_count(counts, ledger)
    if count != NULL:
        count.logs += 1
        if count.logs == 2:
            bk_add(&counts.several, 1)


cdef void log_counts_end(LogCounts* counts, int64_t ledger) noexcept nogil:
    """Record how many logs the ledger took, if any: no more logs of it are expected."""
    cdef LogCount* count = <LogCount*> aged_find(&counts.counts, ledger)
    if count != NULL:
        end_count(counts, count)


cdef LogSet* log_set(LogIds* ids, uint64_t size_limit, uint32_t active_max, int64_t expiry_ns) noexcept nogil:
    cdef LogSet* logs = <LogSet*> calloc(1, sizeof(LogSet))
    if logs == NULL:
        return NULL
    logs.ids = ids
    logs.size_limit = size_limit
    logs.active_max = active_max
    logs.expiry_ns = expiry_ns
    logs.newest = -1
    logs.buffer = log_buffer()
    if (logs.buffer != NULL and by_age_init(&logs.active)
            and log_counts_init(&logs.counts, LEDGERS_A_LOG * active_max)):
        if active_max == 0:
            logs.common = new_log(logs, -1)
        if active_max or logs.common != NULL:
            return logs
    log_set_free(logs)
    return NULL


cdef void log_set_free(LogSet* logs) noexcept nogil:
    if logs == NULL:
        return
    by_age_free(&logs.active, free_active)
    free_ending(logs)
    free_log(logs.common)
    log_buffer_free(logs.buffer)
    log_counts_free(&logs.counts)
    free(logs.born.ids)
    free(logs.marks.ids)
    free(logs)


cdef OpenLog* new_log(LogSet* logs, int64_t ledger) noexcept nogil:
    cdef OpenLog* log = <OpenLog*> calloc(1, sizeof(OpenLog))
    if log == NULL:
        return NULL
    log.aged.chained.ledger = ledger
    log.log_id = -1
    log.writer = writer_new(logs.ids, LOG_USER_FLUSH, logs.buffer, logs.size_limit)
    if log.writer == NULL:
        free(log)
        return NULL
    return log


cdef void free_log(OpenLog* log) noexcept nogil:
    if log != NULL:
        writer_free(log.writer)
        free(log)


cdef void free_active(Chained* log) noexcept nogil:
    free_log(<OpenLog*> log)


cdef void free_ending(LogSet* logs) noexcept nogil:
    cdef OpenLog* log
    while logs.ending != NULL:
        log = logs.ending
        logs.ending = log.next
        free_log(log)
    logs.ending_count = 0


cdef void take_log(LogSet* logs, OpenLog* log) noexcept nogil:
    bk_add(&logs.stats.active, -1)
    aged_drop(&logs.active, &log.aged)


cdef Status open_log(LogSet* logs, int64_t ledger, OpenLog** log) noexcept nogil:
    """Find or create the ledger's log and make it the newest; a new one may displace the oldest."""
    cdef Status status
    log[0] = <OpenLog*> aged_find(&logs.active, ledger)
    if log[0] != NULL:
        aged_renew(&logs.active, &log[0].aged)
        return OK
    if logs.active.table.count >= logs.active_max:
        status = end_log(logs, <OpenLog*> logs.active.oldest, &logs.stats.displaced)
        if status != OK:
            return status
    log[0] = new_log(logs, ledger)
    if log[0] == NULL:
        return NO_MEMORY
    writer_one_of_many(log[0].writer)
    aged_put(&logs.active, &log[0].aged)
    bk_add(&logs.stats.active, 1)
    return OK


cdef Status refuse(LogSet* logs, Status status) noexcept nogil:
    """Remember an error that poisons the set; return `status`."""
    if status == NO_SPACE or status == IO_ERROR:
        logs.failed = status
    return status


cdef void note_id(IdList* list, int64_t id) noexcept nogil:
    cdef uint32_t room
    cdef int64_t* grown
    if list.count == list.room:
        room = list.room * 2 if list.room else IDS_FIRST
        grown = <int64_t*> realloc(list.ids, room * sizeof(int64_t))
        if grown == NULL:
            return
        list.ids = grown
        list.room = room
    list.ids[list.count] = id
    list.count += 1


cdef void log_closed(LogSet* logs, OpenLog* log) noexcept nogil:
    """Forget the log's file, which is complete. A file younger than the last commit is noted as `born`."""
    if log.log_id >= 0 and (log.committed == 0 or bk_planted(PLANT_BORN_COMMITTED)):
        note_id(&logs.born, log.log_id)
    log.log_id = -1


cdef void log_set_hurry(LogSet* logs, bint hurry) noexcept nogil:
    logs.hurry = hurry


cdef Status log_set_append(LogSet* logs, int64_t ledger, iovec* parts, int count, uint64_t size, uint32_t* log_id,
                           uint64_t* offset) noexcept nogil:
    cdef OpenLog* log = logs.common
    cdef Status status = logs.failed
    if status == OK and log == NULL:
        status = open_log(logs, ledger, &log)
    if status != OK:
        return refuse(logs, status)
    if logs.common == NULL:
        log.appended_ns = now_ns()
    log.touched = True
    writer_hurry(log.writer, logs.hurry)
    status = writer_append(log.writer, ledger, parts, count, size, log_id, offset)
    if log.log_id >= 0 and (writer_size(log.writer) == 0 or (status == OK and log.log_id != log_id[0])):
        log_closed(logs, log)        # the log was full and is closed
    if status == OK and log.log_id < 0:
        log.log_id = log_id[0]
        log.committed = 0
        if logs.common == NULL:
            logs.newest = log.log_id
            log_counts_begin(&logs.counts, ledger)
    return refuse(logs, status)


cdef void log_set_mark(LogSet* logs, int64_t ledger) noexcept nogil:
    if logs.common == NULL:
        note_id(&logs.marks, ledger)
        logs.marks_sorted = False


cdef Status end_log(LogSet* logs, OpenLog* log, int64_t* reason) noexcept nogil:
    """Write the log's map. Header and syncs follow in a batch with other logs, and only then it counts as closed."""
    cdef Status status
    take_log(logs, log)
    log.next, log.reason = logs.ending, reason
    logs.ending = log
    logs.ending_count += 1
    status = writer_end(log.writer)
    if status == OK and logs.ending_count >= LOGS_ENDING_MOST:
        status = finish_ending(logs)
    return refuse(logs, status)


cdef Status end_by_close(LogSet* logs, int64_t ledger) noexcept nogil:
    cdef OpenLog* log = <OpenLog*> aged_find(&logs.active, ledger)
    log_counts_end(&logs.counts, ledger)
    if log == NULL:
        return OK
    return end_log(logs, log, &logs.stats.write_closed)


cdef Status log_set_end_marked(LogSet* logs, int64_t ledger) noexcept nogil:
    if logs.marks.count == 0 or logs.failed != OK:
        return logs.failed
    if not logs.marks_sorted:
        qsort(logs.marks.ids, logs.marks.count, sizeof(int64_t), ascending_ids)
        logs.marks_sorted = True
    if bsearch(&ledger, logs.marks.ids, logs.marks.count, sizeof(int64_t), ascending_ids) == NULL:
        return OK
    return end_by_close(logs, ledger)


cdef Status log_set_end_all_marked(LogSet* logs) noexcept nogil:
    cdef Status status = logs.failed
    cdef uint32_t i
    for i in range(logs.marks.count):
        if status == OK:
            status = end_by_close(logs, logs.marks.ids[i])
    return status


cdef Status log_set_expire(LogSet* logs, int64_t now) noexcept nogil:
    cdef OpenLog* log = <OpenLog*> logs.active.oldest
    cdef Status status = logs.failed
    while status == OK and log != NULL and now - log.appended_ns >= logs.expiry_ns:
        status = end_log(logs, log, &logs.stats.expired)
        log = <OpenLog*> logs.active.oldest
    return status


cdef Status finish_ending(LogSet* logs) noexcept nogil:
    """Take all ending logs through the steps of closing."""
    cdef EntryLogWriter* writers[LOGS_ENDING_MOST]
    cdef OpenLog* log = logs.ending
    cdef Status status
    cdef int count = 0
    while log != NULL:
        writers[count] = log.writer
        count += 1
        log = log.next
    status = writers_finish(writers, count) if count else OK
    if status != OK:
        return status
    log = logs.ending
    while log != NULL:
        bk_add(log.reason, 1)
        log_closed(logs, log)
        log = log.next
    free_ending(logs)
    return OK


cdef Status write_ending(LogSet* logs) noexcept nogil:
    cdef OpenLog* log = logs.ending
    cdef Status status = OK
    while log != NULL and status == OK:
        status = writer_write_out(log.writer)
        log = log.next
    return status


cdef Status write_touched(LogSet* logs) noexcept nogil:
    cdef OpenLog* log = <OpenLog*> logs.active.newest
    cdef Status status = OK
    while log != NULL and log.touched and status == OK:
        status = writer_write_out(log.writer)
        log = <OpenLog*> log.aged.older
    return status


cdef Status sync_touched(LogSet* logs) noexcept nogil:
    cdef EntryLogWriter* writers[SYNCS_MOST]
    cdef OpenLog* log = <OpenLog*> logs.active.newest
    cdef Status status = OK
    cdef int count
    while log != NULL and log.touched and status == OK:
        count = 0
        while log != NULL and log.touched and count < SYNCS_MOST:
            writers[count] = log.writer
            count += 1
            log = <OpenLog*> log.aged.older
        status = writers_sync(writers, count)
    return status


cdef Status publish(LogSet* logs) noexcept nogil:
    cdef int rc = 0
    if logs.newest >= 0:
        rc = log_ids_publish(logs.ids, <uint32_t> logs.newest)
    if rc == 0:
        logs.newest = -1
        return OK
    return NO_SPACE if rc == -ENOSPC or rc == -EDQUOT else IO_ERROR


cdef Status log_set_sync(LogSet* logs) noexcept nogil:
    cdef Status status = logs.failed
    if status == OK and logs.common != NULL:
        return refuse(logs, writer_sync(logs.common.writer))
    if status == OK:
        status = write_ending(logs)
    if status == OK:
        status = write_touched(logs)
    if status == OK:
        status = publish(logs)
    if status == OK:
        status = sync_touched(logs)
    if status == OK:
        status = finish_ending(logs)
    return refuse(logs, status)


cdef void settle_log(OpenLog* log) noexcept nogil:
    log.touched = False
    log.committed = writer_size(log.writer)


cdef void log_set_settle(LogSet* logs, int64_t due, int64_t reached) noexcept nogil:
    cdef OpenLog* log = <OpenLog*> logs.active.newest
    if logs.common != NULL:
        settle_log(logs.common)
    while log != NULL and log.touched:
        settle_log(log)
        log = <OpenLog*> log.aged.older
    logs.born.count = 0
    logs.marks.count = 0
    log_ids_settle_later(logs.ids, LOG_USER_FLUSH, due, reached)


cdef void remove_born(LogSet* logs) noexcept nogil:
    """Remove complete logs to which no commit points: with each retry they would fill a full disk further."""
    cdef char path[PATH_BYTES]
    cdef uint32_t i
    for i in range(logs.born.count):
        snprintf(path, PATH_BYTES, "%s/%x.log", log_ids_directory(logs.ids), <uint32_t> logs.born.ids[i])
        log_ids_ops(logs.ids).unlink(path)
        log_ids_drop(logs.ids, <uint32_t> logs.born.ids[i])
    logs.born.count = 0


cdef void log_set_give_up(LogSet* logs) noexcept nogil:
    cdef OpenLog* log = <OpenLog*> logs.active.newest
    if logs.failed == IO_ERROR:
        return
    if logs.common != NULL and logs.common.touched:
        writer_give_up(logs.common.writer, 0 if bk_planted(PLANT_GIVE_UP_ALL) else logs.common.committed)
        logs.common.log_id = -1
        logs.common.committed = 0
        logs.common.touched = False
    while log != NULL and log.touched:
        take_log(logs, log)
        writer_give_up(log.writer, log.committed)
        free_log(log)
        log = <OpenLog*> logs.active.newest
    log = logs.ending
    while log != NULL:
        writer_give_up(log.writer, log.committed)
        log = log.next
    free_ending(logs)
    remove_born(logs)
    logs.failed = OK


cdef uint64_t log_set_bytes_max(uint32_t active_max) noexcept nogil:
    cdef uint64_t each = writer_bytes() + sizeof(OpenLog) + 2 * sizeof(OpenLog*)      # two buckets at most
    cdef uint64_t counts = LEDGERS_A_LOG * active_max * <uint64_t> (sizeof(LogCount) + 2 * sizeof(LogCount*))
    return LOG_BUFFER_BYTES + (active_max + LOGS_ENDING_MOST if active_max else 1) * each + counts


cdef LogSetStats* log_set_stats(LogSet* logs) noexcept nogil:
    return &logs.stats


cdef const LogCounts* log_set_counts(LogSet* logs) noexcept nogil:
    return &logs.counts


cdef class EntryLogSet:
    """A set for tests; the caller is its only thread."""
    cdef LogSet* set
    cdef LogIds* ids
    cdef Files files
    cdef object directory

    def __cinit__(self, directory, *, uint32_t active_max, double expiry_s=300, uint64_t size_limit=1 << 30,
                  uint32_t next_id=0, Files files=None):
        self.directory = directory
        self.files = files if files is not None else Files()
        self.ids = log_ids(self.files.ops, os.fsencode(directory), next_id)
        if self.ids != NULL:
            self.set = log_set(self.ids, size_limit, active_max, <int64_t> (expiry_s * 1e9))
        if self.set == NULL:
            raise MemoryError(f"{directory}: no memory for its entry logs, or the path is too long")

    def __dealloc__(self):
        log_set_free(self.set)
        log_ids_free(self.ids)

    def append(self, int64_t ledger, bytes entry):
        """Append one entry; return (log id, offset of its length word)."""
        cdef uint8_t prefix[LENGTH_PREFIX]
        cdef iovec parts[2]
        cdef uint32_t log_id = 0
        cdef uint64_t offset = 0
        cdef uint64_t size = LENGTH_PREFIX + <uint64_t> len(entry)
        cdef Status status
        store_u32(prefix, <uint32_t> len(entry))
        parts[0].iov_base = prefix
        parts[0].iov_len = LENGTH_PREFIX
        parts[1].iov_base = <char*> entry
        parts[1].iov_len = len(entry)
        with nogil:
            status = log_set_append(self.set, ledger, parts, 2, size, &log_id, &offset)
        log_check(status, self.directory)
        return log_id, offset

    def mark(self, int64_t ledger):
        log_set_mark(self.set, ledger)

    def end_marked(self, ledger=None):
        log_check(log_set_end_all_marked(self.set) if ledger is None else log_set_end_marked(self.set, ledger),
                  self.directory)

    def expire(self, double seconds_on):
        """Close logs as if `seconds_on` seconds had passed."""
        log_check(log_set_expire(self.set, now_ns() + <int64_t> (seconds_on * 1e9)), self.directory)

    def sync(self):
        cdef Status status
        with nogil:
            status = log_set_sync(self.set)
        log_check(status, self.directory)

    def settle(self):
        log_set_settle(self.set, 0, 0)

    def give_up(self):
        log_set_give_up(self.set)

    def is_open(self, uint32_t log_id):
        return log_ids_is_open(self.ids, log_id)

    def stats(self):
        return <dict> self.set.stats

    def counts(self):
        """Return (ledgers that began a second log, OpView of the logs of each ledger that ended)."""
        return bk_load(&self.set.counts.several), op_view(&self.set.counts.noted)


def bytes_max(uint32_t active_max) -> int:
    """Return the most memory, in bytes, that the entry logs of one ledger directory take."""
    return log_set_bytes_max(active_max)
