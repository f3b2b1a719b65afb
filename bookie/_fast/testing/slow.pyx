"""File operations as slow as a disk with a set latency and rate, for measurements with more disks than a machine has.

A disk is a set of directories. Its bytes pass one after the other at its rate, in the order of the calls. Each write
and each sync ends a latency after all bytes before it have passed; the latencies of calls by several threads overlap.
Reads and everything else are as fast as the real disk, which should be memory (tmpfs).

LMDB writes its file itself: a commit of a transaction that may write ends after two latencies, for its two syncs, and
its bytes are not counted.

Any thread may call; one lock guards the disks and is not held while a call waits.
"""
from collections import namedtuple

from libc.stdint cimport int64_t, uint64_t
from libc.stdio cimport snprintf
from libc.string cimport memcpy, memset, strlen, strncmp
from posix.time cimport CLOCK_MONOTONIC, timespec
from posix.types cimport off_t

from bookie._fast.base.file cimport FileOps, Files, iovec, real_ops
from bookie._fast.base.lmdb_c cimport MDB_RDONLY, MDB_env, MDB_txn, mdb
from bookie._fast.base.sync cimport (
    now_ns,
    pthread_mutex_init,
    pthread_mutex_lock,
    pthread_mutex_t,
    pthread_mutex_unlock,
)

cdef extern from "<time.h>" nogil:
    int TIMER_ABSTIME
    int clock_nanosleep(int clock, int flags, const timespec* until, timespec* left) noexcept

cdef extern from "<unistd.h>" nogil:
    ssize_t readlink(const char*, char*, size_t) noexcept

cdef enum:
    DISKS_MAX = 64               # as many as bits of a word
    FDS_MAX = 4096
    PATH_BYTES = 1024
    DIRECTORIES_MAX = 256
    WRITERS_MAX = 256
    NANOSECONDS = 1000000000

cdef struct Disk:
    int64_t operations
    int64_t bytes
    int64_t passed_ns            # when all bytes so far have passed, by the monotonic clock

cdef struct Directory:
    int disk
    char path[PATH_BYTES]

cdef struct Writer:
    # LMDB has one writing transaction for each environment, always at the same address.
    MDB_txn* txn
    int disk

cdef pthread_mutex_t lock
cdef Disk disks[DISKS_MAX]
cdef Directory directories[DIRECTORIES_MAX]
cdef Writer writers[WRITERS_MAX]
cdef int disk_count = 0
cdef int directory_count = 0
cdef int writer_count = 0
cdef int64_t latency_ns = 0
cdef int64_t rate = 0            # bytes per second; 0: no limit
cdef signed char disk_of[FDS_MAX]
cdef FileOps* real = real_ops()
cdef int (*real_begin)(MDB_env* env, MDB_txn* parent, unsigned int flags, MDB_txn** txn) noexcept nogil
cdef int (*real_commit)(MDB_txn* txn) noexcept nogil

pthread_mutex_init(&lock, NULL)
memset(disk_of, -1, sizeof(disk_of))


cdef int disk_at(const char* path) noexcept nogil:
    """Return the disk with this path, or -1."""
    cdef size_t n
    cdef int i
    for i in range(directory_count):
        n = strlen(directories[i].path)
        if strncmp(path, directories[i].path, n) == 0 and (path[n] == 47 or path[n] == 0):
            return directories[i].disk
    return -1


cdef int disk_with(int fd) noexcept nogil:
    return disk_of[fd] if 0 <= fd < FDS_MAX else -1


cdef void work(int disk, size_t size, int latencies) noexcept nogil:
    """Wait until the disk has done this."""
    cdef timespec until
    cdef int64_t ready
    if disk < 0:
        return
    pthread_mutex_lock(&lock)
    disks[disk].operations += 1
    disks[disk].bytes += size
    ready = now_ns()
    if ready < disks[disk].passed_ns:
        ready = disks[disk].passed_ns
    if rate > 0:
        ready += <int64_t> (<double> size * NANOSECONDS / rate)
    disks[disk].passed_ns = ready
    ready += latencies * latency_ns
    pthread_mutex_unlock(&lock)
    until.tv_sec = ready // NANOSECONDS
    until.tv_nsec = ready % NANOSECONDS
    while clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) != 0:
        pass


cdef int slow_open(const char* path, int flags, int mode) noexcept nogil:
    cdef int fd = real.open(path, flags, mode)
    if 0 <= fd < FDS_MAX:
        disk_of[fd] = disk_at(path)
    return fd


cdef ssize_t slow_pwritev(int fd, const iovec* parts, int count, off_t offset) noexcept nogil:
    cdef ssize_t n = real.pwritev(fd, parts, count, offset)
    if n > 0:
        work(disk_with(fd), n, 1)
    return n


cdef int slow_fdatasync(int fd) noexcept nogil:
    cdef int rc = real.fdatasync(fd)
    work(disk_with(fd), 0, 1)
    return rc


cdef void slow_fdatasync_many(const int* fds, int* results, int count) noexcept nogil:
    """Sync files, which a disk does at the same time."""
    cdef uint64_t seen = 0
    cdef int i, disk
    real.fdatasync_many(fds, results, count)
    for i in range(count):
        disk = disk_with(fds[i])
        if disk >= 0 and not seen >> disk & 1:
            seen |= <uint64_t> 1 << disk
            work(disk, 0, 1)


cdef int slow_close(int fd) noexcept nogil:
    if 0 <= fd < FDS_MAX:
        disk_of[fd] = -1
    return real.close(fd)


cdef int slow_begin(MDB_env* env, MDB_txn* parent, unsigned int flags, MDB_txn** txn) noexcept nogil:
    cdef int error = real_begin(env, parent, flags, txn)
    cdef char link[32]
    cdef char path[PATH_BYTES]
    cdef int fd
    cdef ssize_t n
    if error or flags & MDB_RDONLY or mdb.env_get_fd(env, &fd):
        return error
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd)
    n = readlink(link, path, sizeof(path) - 1)
    path[n if n > 0 else 0] = 0
    note_writer(txn[0], disk_at(path))
    return error


cdef void note_writer(MDB_txn* txn, int disk) noexcept nogil:
    global writer_count
    cdef int i = 0
    pthread_mutex_lock(&lock)
    while i < writer_count and writers[i].txn != txn:
        i += 1
    if i < WRITERS_MAX:
        writers[i] = Writer(txn, disk)
        if i == writer_count:
            writer_count += 1
    pthread_mutex_unlock(&lock)


cdef int slow_commit(MDB_txn* txn) noexcept nogil:
    cdef int disk = -1
    cdef int i
    pthread_mutex_lock(&lock)
    for i in range(writer_count):
        if writers[i].txn == txn:
            disk = writers[i].disk
    pthread_mutex_unlock(&lock)
    cdef int error = real_commit(txn)
    work(disk, 0, 2)
    return error


cdef FileOps slow
memcpy(&slow, real, sizeof(slow))
slow.open = slow_open
slow.pwritev = slow_pwritev
slow.fdatasync = slow_fdatasync
slow.fdatasync_many = slow_fdatasync_many
slow.close = slow_close


cdef class SlowFiles(Files):
    """File operations on the disks of `set_disks()`; pass it to a constructor in place of Files."""

    def __cinit__(self):
        self.ops = &slow


Used = namedtuple("Used", "operations bytes")


def set_disks(groups, *, int64_t latency_us, int64_t bytes_s=0):
    """Say which disks there are. Call it before any SlowFiles is used.

    Args:
        groups: For each disk, the absolute paths of its directories.
        latency_us: How long a write or a sync takes, apart from its bytes.
        bytes_s: The rate of a disk in bytes per second; 0 means no limit.

    Raises:
        ValueError: for a negative latency or rate, or if there are too many disks or directories, or a path is too
            long.
    """
    global disk_count, directory_count, latency_ns, rate, real_begin, real_commit
    flat = [(number, path.encode()) for number, paths in enumerate(groups) for path in paths]
    if latency_us < 0 or bytes_s < 0:
        raise ValueError(f"set_disks: latency_us {latency_us} and bytes_s {bytes_s} must not be negative")
    if len(groups) > DISKS_MAX or len(flat) > DIRECTORIES_MAX or any(len(path) >= PATH_BYTES for _, path in flat):
        raise ValueError(f"set_disks: at most {DISKS_MAX} disks with {DIRECTORIES_MAX} paths below {PATH_BYTES} bytes")
    cdef const char* text
    cdef int i = 0
    for number, path in flat:
        text = path
        directories[i].disk = number
        memcpy(directories[i].path, text, len(path) + 1)
        i += 1
    memset(disks, 0, sizeof(disks))
    disk_count = len(groups)
    directory_count = i
    latency_ns = 1000 * latency_us
    rate = bytes_s
    if real_begin == NULL:
        real_begin = mdb.txn_begin
        real_commit = mdb.txn_commit
        mdb.txn_begin = slow_begin
        mdb.txn_commit = slow_commit


def used():
    """Return the operations that each disk has done since `set_disks`, and their bytes."""
    return [Used(disk.operations, disk.bytes) for disk in disks[:disk_count]]
