"""A bounded cache of read descriptors by log id. Any thread; its mutex is never held over a system call."""
import os

from libc.errno cimport EINTR, ENOENT
from libc.stdint cimport uint32_t, uint64_t
from libc.stdio cimport snprintf
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy, strlen
from posix.fcntl cimport O_RDONLY
from posix.types cimport off_t

from bookie._fast.base.file cimport FileOps, Files
from bookie._fast.base.sync cimport (
    pthread_cond_broadcast,
    pthread_cond_destroy,
    pthread_cond_init,
    pthread_cond_t,
    pthread_cond_wait,
    pthread_mutex_destroy,
    pthread_mutex_init,
    pthread_mutex_lock,
    pthread_mutex_t,
    pthread_mutex_unlock,
)
from bookie._fast.base.types cimport Status
from bookie._fast.entrylog.scan cimport LOG_ID_MAX, log_check

cdef extern from "<fcntl.h>" nogil:
    int O_CLOEXEC
    int POSIX_FADV_WILLNEED
    int posix_fadvise(int fd, off_t offset, off_t size, int advice) noexcept

cdef enum:
    PATH_BYTES = 4096
    NAME_BYTES = 32              # enough for "/ffffffff.log"
    NO_LOG = 0xFFFFFFFF          # not a valid log id

cdef struct OpenLog:
    uint32_t log_id              # NO_LOG: unused, or forgotten while reads are in progress
    int fd                       # -1 while it is being opened
    int reads                    # in progress
    uint64_t used                # tick of the last use

cdef struct EntryLogReaders:
    FileOps* ops
    char* directory
    int open_max
    OpenLog* logs
    uint64_t tick
    pthread_mutex_t lock         # guards logs and tick; never held over a system call
    pthread_cond_t changed       # a log was opened, or a read ended


cdef EntryLogReaders* readers_new(FileOps* ops, const char* directory, int open_max) noexcept nogil:
    cdef EntryLogReaders* readers
    cdef size_t size = strlen(directory) + 1
    cdef int i
    if size > PATH_BYTES - NAME_BYTES or open_max < 1:
        return NULL
    readers = <EntryLogReaders*> calloc(1, sizeof(EntryLogReaders))
    if readers == NULL:
        return NULL
    readers.directory = <char*> malloc(size)
    readers.logs = <OpenLog*> calloc(open_max, sizeof(OpenLog))
    if readers.directory == NULL or readers.logs == NULL:
        free(readers.directory)
        free(readers.logs)
        free(readers)
        return NULL
    memcpy(readers.directory, directory, size)
    readers.ops = ops
    readers.open_max = open_max
    for i in range(open_max):
        readers.logs[i].log_id = NO_LOG
        readers.logs[i].fd = -1
    pthread_mutex_init(&readers.lock, NULL)
    pthread_cond_init(&readers.changed, NULL)
    return readers


cdef void readers_free(EntryLogReaders* readers) noexcept nogil:
    cdef int i
    if readers == NULL:
        return
    for i in range(readers.open_max):
        if readers.logs[i].fd >= 0:
            readers.ops.close(readers.logs[i].fd)
    pthread_mutex_destroy(&readers.lock)
    pthread_cond_destroy(&readers.changed)
    free(readers.logs)
    free(readers.directory)
    free(readers)


cdef OpenLog* find_log(EntryLogReaders* readers, uint32_t log_id) noexcept nogil:
    cdef int i
    for i in range(readers.open_max):
        if readers.logs[i].log_id == log_id:
            return &readers.logs[i]
    return NULL


cdef OpenLog* find_victim(EntryLogReaders* readers) noexcept nogil:
    """Return the slot to use next: one without a descriptor, else the least recently used. NULL if all are in use."""
    cdef OpenLog* victim = NULL
    cdef OpenLog* log
    cdef int i
    for i in range(readers.open_max):
        log = &readers.logs[i]
        if log.reads > 0:
            continue
        if log.fd < 0:
            return log
        if victim == NULL or log.used < victim.used:
            victim = log
    return victim


cdef OpenLog* acquire_log(EntryLogReaders* readers, uint32_t log_id, int* stale) noexcept nogil:
    """Return the slot of `log_id`, a read counted. If its fd is -1, open it. *stale: a descriptor to close, or -1."""
    cdef OpenLog* log
    stale[0] = -1
    pthread_mutex_lock(&readers.lock)
    while True:
        log = find_log(readers, log_id)
        if log != NULL and log.fd >= 0:
            break
        if log == NULL:
            log = find_victim(readers)
            if log != NULL:
                stale[0] = log.fd
                log.fd = -1
                log.log_id = log_id
                break
        pthread_cond_wait(&readers.changed, &readers.lock)
    readers.tick += 1
    log.used = readers.tick
    log.reads += 1
    pthread_mutex_unlock(&readers.lock)
    return log


cdef void opened_log(EntryLogReaders* readers, OpenLog* log, int fd) noexcept nogil:
    """Publish the descriptor of a slot that acquire_log returned new, or the failure to open it (fd < 0)."""
    pthread_mutex_lock(&readers.lock)
    log.fd = fd if fd >= 0 else -1
    if fd < 0:
        log.log_id = NO_LOG
    pthread_cond_broadcast(&readers.changed)
    pthread_mutex_unlock(&readers.lock)


cdef void release_log(EntryLogReaders* readers, OpenLog* log) noexcept nogil:
    """End a read. The slot of a forgotten log becomes free after its descriptor is closed, to keep the bound."""
    cdef int fd
    pthread_mutex_lock(&readers.lock)
    if log.reads == 1 and log.log_id == NO_LOG and log.fd >= 0:
        fd = log.fd
        pthread_mutex_unlock(&readers.lock)
        readers.ops.close(fd)
        pthread_mutex_lock(&readers.lock)
        log.fd = -1
    log.reads -= 1
    if log.reads == 0:
        pthread_cond_broadcast(&readers.changed)
    pthread_mutex_unlock(&readers.lock)


cdef void readers_forget(EntryLogReaders* readers, uint32_t log_id) noexcept nogil:
    cdef OpenLog* log = NULL
    if log_id > LOG_ID_MAX:
        return
    pthread_mutex_lock(&readers.lock)
    log = find_log(readers, log_id)
    if log != NULL:
        log.log_id = NO_LOG
        log.reads += 1
    pthread_mutex_unlock(&readers.lock)
    if log != NULL:
        release_log(readers, log)


cdef Status read_log(FileOps* ops, int fd, uint64_t offset, void* buffer, size_t size, size_t* got) noexcept nogil:
    cdef ssize_t n
    while got[0] < size:
        n = ops.pread(fd, <char*> buffer + got[0], size - got[0], offset + got[0])
        if n == -EINTR:
            continue
        if n < 0:
            return Status.IO_ERROR
        if n == 0:
            break
        got[0] += n
    return Status.OK


cdef Status readers_read(EntryLogReaders* readers, uint32_t log_id, uint64_t offset, void* buffer, size_t size,
                         size_t* got, size_t ahead) noexcept nogil:
    cdef char path[PATH_BYTES]
    cdef OpenLog* log
    cdef Status status = Status.IO_ERROR
    cdef int stale
    cdef int fd
    got[0] = 0
    if log_id > LOG_ID_MAX:
        return Status.IO_ERROR
    log = acquire_log(readers, log_id, &stale)
    if stale >= 0:
        readers.ops.close(stale)
    fd = log.fd
    if fd < 0:
        snprintf(path, PATH_BYTES, "%s/%x.log", readers.directory, log_id)
        fd = readers.ops.open(path, O_RDONLY | O_CLOEXEC, 0)
        opened_log(readers, log, fd)
    if fd == -ENOENT:
        status = Status.CLOSED
    elif fd >= 0:
        status = read_log(readers.ops, fd, offset, buffer, size, got)
        if status == Status.OK and ahead > 0:
            posix_fadvise(fd, offset + size, ahead, POSIX_FADV_WILLNEED)
    release_log(readers, log)
    return status


cdef class EntryLogReader:
    """Reads at known offsets of the entry logs of a directory, by any thread, with at most `open_max` descriptors."""
    cdef EntryLogReaders* readers
    cdef Files files
    cdef object directory

    def __cinit__(self, directory, int open_max=256, Files files=None):
        self.directory = directory
        self.files = files if files is not None else Files()
        self.readers = readers_new(self.files.ops, os.fsencode(directory), open_max)
        if self.readers == NULL:
            raise MemoryError(f"{directory}: no memory for {open_max} open logs, or the path is too long")

    def __dealloc__(self):
        readers_free(self.readers)

    def read(self, uint32_t log_id, uint64_t offset, size_t size, size_t ahead=0):
        """Return `size` bytes at `offset`; fewer only at the end of the file. OSError if the log cannot be read."""
        buffer = bytearray(size)
        cdef char* into = buffer
        cdef size_t got
        cdef Status status
        with nogil:
            status = readers_read(self.readers, log_id, offset, into, size, &got, ahead)
        log_check(status, f"{self.directory}/{log_id:x}.log")
        return bytes(buffer[:got])

    def forget(self, uint32_t log_id):
        readers_forget(self.readers, log_id)
