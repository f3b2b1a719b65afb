"""Entry log ids: one lock for creation, which may wait for the disk, and one for the open set, which never does."""
import os

from libc.errno cimport EEXIST, EINTR, ENOMEM
from libc.stdint cimport INT64_MAX, UINT32_MAX, int64_t, uint32_t, uint64_t
from libc.stdio cimport snprintf
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memcpy, strlen
from posix.fcntl cimport O_CREAT, O_EXCL, O_TRUNC, O_WRONLY

from bookie._fast.base.crash_steps cimport STEP_LOG_CREATED, STEP_LOG_PUBLISHED, step
from bookie._fast.base.file cimport PRIVATE_MODE, FileOps, Files, sync_dir, write_full
from bookie._fast.base.planted cimport PLANT_LOG_SETTLED_EARLY, PLANT_RELEASED_EARLY, bk_planted
from bookie._fast.base.sync cimport (
    pthread_mutex_destroy,
    pthread_mutex_init,
    pthread_mutex_lock,
    pthread_mutex_t,
    pthread_mutex_unlock,
)
from bookie._fast.entrylog.scan cimport LOG_ID_MAX

cdef extern from "<fcntl.h>" nogil:
    int O_CLOEXEC

FLUSH = <int> LOG_USER_FLUSH
COMPACTION = <int> LOG_USER_COMPACTION

cdef enum:
    PATH_BYTES = 4096
    NAME_BYTES = 32              # enough for "/ffffffff.log" and "/lastId.tmp"
    OPEN_FIRST = 16

cdef struct OpenLog:
    uint32_t log_id
    LogUser user
    bint closed                  # by its writer; the index is not committed yet
    int64_t committed            # bytes of a log of compaction that the index points into; -1: any other log
    int64_t due                  # the count of commits that settles it; -1: not known yet

cdef struct LogIds:
    FileOps* ops
    char* directory
    pthread_mutex_t creating     # held while a file or `lastId` is created; taken before `lock`
    int64_t published            # the id in `lastId`; -1 if this process has not written it
    pthread_mutex_t lock         # guards the fields below; never held over a system call
    uint32_t next_id
    OpenLog* open
    uint32_t count
    uint32_t room
    uint32_t least               # lower bound of the ids in `open`; most ids asked for are outside and need no search
    uint32_t greatest            # upper bound


cdef LogIds* log_ids(FileOps* ops, const char* directory, uint32_t next_id) noexcept nogil:
    cdef LogIds* ids
    cdef size_t size = strlen(directory) + 1
    if size > PATH_BYTES - NAME_BYTES:
        return NULL
    ids = <LogIds*> calloc(1, sizeof(LogIds))
    if ids == NULL:
        return NULL
    ids.directory = <char*> malloc(size)
    ids.open = <OpenLog*> malloc(OPEN_FIRST * sizeof(OpenLog))
    if ids.directory == NULL or ids.open == NULL:
        free(ids.directory)
        free(ids.open)
        free(ids)
        return NULL
    memcpy(ids.directory, directory, size)
    ids.ops = ops
    ids.next_id = next_id if next_id <= LOG_ID_MAX else 0
    ids.published = -1
    ids.room = OPEN_FIRST
    ids.least = UINT32_MAX
    pthread_mutex_init(&ids.creating, NULL)
    pthread_mutex_init(&ids.lock, NULL)
    return ids


cdef void log_ids_free(LogIds* ids) noexcept nogil:
    if ids == NULL:
        return
    pthread_mutex_destroy(&ids.creating)
    pthread_mutex_destroy(&ids.lock)
    free(ids.open)
    free(ids.directory)
    free(ids)


cdef int64_t place_of(const LogIds* ids, uint32_t log_id) noexcept nogil:
    """Return the index of the log in the open set, or -1. The caller holds the lock. Recent logs are found first."""
    cdef int64_t i = <int64_t> ids.count - 1
    if log_id < ids.least or log_id > ids.greatest:
        return -1
    while i >= 0 and ids.open[i].log_id != log_id:
        i -= 1
    return i


cdef void span(LogIds* ids, uint32_t log_id) noexcept nogil:
    ids.least = min(ids.least, log_id)
    ids.greatest = max(ids.greatest, log_id)


cdef bint enter(LogIds* ids, uint32_t log_id, LogUser user) noexcept nogil:
    """Add a log to the open set before its file exists, so that a directory listing never takes it for closed."""
    cdef OpenLog* grown
    pthread_mutex_lock(&ids.lock)
    if ids.count == ids.room:
        grown = <OpenLog*> realloc(ids.open, ids.room * 2 * sizeof(OpenLog))
        if grown == NULL:
            pthread_mutex_unlock(&ids.lock)
            return False
        ids.open = grown
        ids.room *= 2
    ids.open[ids.count].log_id = log_id
    ids.open[ids.count].user = user
    ids.open[ids.count].closed = False
    ids.open[ids.count].due = -1
    ids.open[ids.count].committed = 0 if user == LOG_USER_COMPACTION else -1
    ids.count += 1
    span(ids, log_id)
    pthread_mutex_unlock(&ids.lock)
    return True


cdef void log_ids_drop(LogIds* ids, uint32_t log_id) noexcept nogil:
    cdef int64_t at
    pthread_mutex_lock(&ids.lock)
    at = place_of(ids, log_id)
    if at >= 0:
        ids.count -= 1
        ids.open[at] = ids.open[ids.count]
    pthread_mutex_unlock(&ids.lock)


cdef int log_ids_create(LogIds* ids, LogUser user, uint32_t* log_id) noexcept nogil:
    cdef char path[PATH_BYTES]
    cdef uint32_t id
    cdef int fd = -EEXIST
    pthread_mutex_lock(&ids.creating)
    id = log_ids_next(ids)
    while fd == -EEXIST:
        if log_ids_is_open(ids, id):         # its file may be gone already, but its writer still uses the id
            id = id + 1 if id < LOG_ID_MAX else 0
            continue
        if not enter(ids, id, user):
            fd = -ENOMEM
            break
        snprintf(path, PATH_BYTES, "%s/%x.log", ids.directory, id)
        fd = -EINTR
        while fd == -EINTR:
            fd = ids.ops.open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, PRIVATE_MODE)
        if fd < 0:
            log_ids_drop(ids, id)
        else:
            log_id[0] = id
        if fd == -EEXIST or fd >= 0:
            id = id + 1 if id < LOG_ID_MAX else 0
    if fd >= 0:
        step(STEP_LOG_CREATED)
        pthread_mutex_lock(&ids.lock)
        ids.next_id = id
        pthread_mutex_unlock(&ids.lock)
    pthread_mutex_unlock(&ids.creating)
    return fd


cdef int write_last_id(LogIds* ids, uint32_t log_id) noexcept nogil:
    cdef char temporary[PATH_BYTES]
    cdef char path[PATH_BYTES]
    cdef char text[NAME_BYTES]
    cdef int size = snprintf(text, sizeof(text), "%x\n", log_id)
    cdef int fd, rc
    snprintf(temporary, PATH_BYTES, "%s/lastId.tmp", ids.directory)
    snprintf(path, PATH_BYTES, "%s/lastId", ids.directory)
    fd = ids.ops.open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, PRIVATE_MODE)
    if fd < 0:
        return fd
    rc = write_full(ids.ops, fd, text, size, 0)
    if rc == 0:
        rc = ids.ops.fdatasync(fd)
    ids.ops.close(fd)
    if rc == 0:
        rc = ids.ops.rename(temporary, path)
    return rc


cdef bint behind(int64_t published, uint32_t log_id) noexcept nogil:
    """Return whether `lastId` holds a greater id already. If it is greater by far, the ids have wrapped around."""
    return published > log_id and published - log_id < LOG_ID_MAX // 2


cdef int log_ids_publish(LogIds* ids, uint32_t log_id) noexcept nogil:
    cdef int rc = 0
    pthread_mutex_lock(&ids.creating)
    if not behind(ids.published, log_id):
        rc = write_last_id(ids, log_id)
        if rc == 0:
            ids.published = log_id
    if rc == 0:
        rc = sync_dir(ids.ops, ids.directory)
    if rc == 0:
        step(STEP_LOG_PUBLISHED)
    pthread_mutex_unlock(&ids.creating)
    return rc


cdef void log_ids_close(LogIds* ids, uint32_t log_id) noexcept nogil:
    cdef int64_t at
    pthread_mutex_lock(&ids.lock)
    at = place_of(ids, log_id)
    if at >= 0:
        ids.open[at].closed = True
        if bk_planted(PLANT_RELEASED_EARLY):
            ids.open[at].log_id = UINT32_MAX
    pthread_mutex_unlock(&ids.lock)


cdef void log_ids_commit(LogIds* ids, uint32_t log_id, uint64_t bytes) noexcept nogil:
    cdef int64_t at
    pthread_mutex_lock(&ids.lock)
    at = place_of(ids, log_id)
    if at >= 0 and ids.open[at].user == LOG_USER_COMPACTION:
        ids.open[at].committed = <int64_t> bytes
    pthread_mutex_unlock(&ids.lock)


cdef int64_t log_ids_committed(LogIds* ids, uint32_t log_id) noexcept nogil:
    cdef int64_t at
    cdef int64_t committed = -1
    pthread_mutex_lock(&ids.lock)
    at = place_of(ids, log_id)
    if at >= 0:
        committed = ids.open[at].committed
    pthread_mutex_unlock(&ids.lock)
    return committed


cdef void log_ids_settle(LogIds* ids, LogUser user) noexcept nogil:
    log_ids_settle_later(ids, user, 0, INT64_MAX)


cdef void log_ids_settle_later(LogIds* ids, LogUser user, int64_t due, int64_t reached) noexcept nogil:
    cdef uint32_t i
    cdef uint32_t kept = 0
    pthread_mutex_lock(&ids.lock)
    ids.least = UINT32_MAX
    ids.greatest = 0
    for i in range(ids.count):
        if ids.open[i].closed and ids.open[i].user == user:
            if ids.open[i].due < 0:
                ids.open[i].due = due
            if ids.open[i].due <= reached or bk_planted(PLANT_LOG_SETTLED_EARLY):
                continue
        ids.open[kept] = ids.open[i]
        span(ids, ids.open[kept].log_id)
        kept += 1
    ids.count = kept
    pthread_mutex_unlock(&ids.lock)


cdef bint log_ids_is_open(LogIds* ids, uint32_t log_id) noexcept nogil:
    cdef bint found
    pthread_mutex_lock(&ids.lock)
    found = place_of(ids, log_id) >= 0
    pthread_mutex_unlock(&ids.lock)
    return found


cdef int64_t log_ids_least_open(LogIds* ids) noexcept nogil:
    cdef int64_t least = -1
    cdef uint32_t i
    pthread_mutex_lock(&ids.lock)
    for i in range(ids.count):
        if least < 0 or ids.open[i].log_id < least:
            least = ids.open[i].log_id
    pthread_mutex_unlock(&ids.lock)
    return least


cdef uint32_t log_ids_open_count(LogIds* ids) noexcept nogil:
    cdef uint32_t count
    pthread_mutex_lock(&ids.lock)
    count = ids.count
    pthread_mutex_unlock(&ids.lock)
    return count


cdef uint32_t log_ids_next(LogIds* ids) noexcept nogil:
    cdef uint32_t next_id
    pthread_mutex_lock(&ids.lock)
    next_id = ids.next_id
    pthread_mutex_unlock(&ids.lock)
    return next_id


cdef const char* log_ids_directory(LogIds* ids) noexcept nogil:
    return ids.directory


cdef FileOps* log_ids_ops(LogIds* ids) noexcept nogil:
    return ids.ops


cdef class EntryLogIds:
    """The ids of one directory, for tests and tools. Any thread."""
    cdef LogIds* ids
    cdef Files files
    cdef object directory

    def __cinit__(self, directory, uint32_t next_id=0, Files files=None):
        self.directory = directory
        self.files = files if files is not None else Files()
        self.ids = log_ids(self.files.ops, os.fsencode(directory), next_id)
        if self.ids == NULL:
            raise MemoryError(f"{directory}: no memory for entry log ids, or the path is too long")

    def __dealloc__(self):
        log_ids_free(self.ids)

    @property
    def next_id(self):
        return log_ids_next(self.ids)

    def create(self, int user=LOG_USER_FLUSH):
        """Create the next log, empty, and return its id. OSError if that fails."""
        cdef uint32_t log_id = 0
        cdef LogUser whose = <LogUser> user
        cdef int fd
        with nogil:
            fd = log_ids_create(self.ids, whose, &log_id)
            if fd >= 0:
                self.files.ops.close(fd)
        if fd < 0:
            raise OSError(-fd, "cannot create an entry log", str(self.directory))
        return log_id

    def publish(self, uint32_t log_id):
        """Write `lastId` and sync the directory. OSError if that fails."""
        cdef int rc
        with nogil:
            rc = log_ids_publish(self.ids, log_id)
        if rc < 0:
            raise OSError(-rc, "cannot write lastId", str(self.directory))

    def close(self, uint32_t log_id):
        log_ids_close(self.ids, log_id)

    def drop(self, uint32_t log_id):
        log_ids_drop(self.ids, log_id)

    def settle(self, int user=LOG_USER_FLUSH):
        log_ids_settle(self.ids, <LogUser> user)

    def is_open(self, uint32_t log_id):
        return log_ids_is_open(self.ids, log_id)

    def least_open(self):
        least = log_ids_least_open(self.ids)
        return None if least < 0 else least

    def open_count(self):
        return log_ids_open_count(self.ids)
