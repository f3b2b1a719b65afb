"""FileOps: the function table through which all data reaches a disk, which lets tests plan faults.

Its functions return -errno on failure.
"""
from posix.types cimport off_t

cdef extern from "<sys/uio.h>" nogil:
    struct iovec:
        void* iov_base
        size_t iov_len

cdef enum:
    PRIVATE_MODE = 0o600         # the mode of every file that the bookie creates: only its user may read it

cdef struct FileOps:
    int (*open)(const char* path, int flags, int mode) noexcept nogil
    ssize_t (*pread)(int fd, void* buffer, size_t size, off_t offset) noexcept nogil
    ssize_t (*pwritev)(int fd, const iovec* parts, int count, off_t offset) noexcept nogil
    int (*fdatasync)(int fd) noexcept nogil
    int (*fallocate)(int fd, int mode, off_t offset, off_t size) noexcept nogil
    int (*rename)(const char* old, const char* new) noexcept nogil
    int (*unlink)(const char* path) noexcept nogil
    int (*close)(int fd) noexcept nogil
    void (*fdatasync_many)(const int* fds, int* results, int count) noexcept nogil   # see sync_many

cdef FileOps* real_ops() noexcept nogil
# Let `fd` bypass the page cache (O_DIRECT), or use it again if `on` is False. Return False if nothing changed.
cdef bint set_direct(int fd, bint on) noexcept nogil
# Transfer all bytes: short counts are continued, EINTR is repeated. Return 0 or -errno; -ENODATA for a read past the
# end of the file. If a direct descriptor refuses a write with EINVAL (a short write ended within a block, or the
# device has larger blocks), it uses the page cache from then on.
cdef int write_full(FileOps* ops, int fd, const void* data, size_t size, off_t offset) noexcept nogil
cdef int writev_full(FileOps* ops, int fd, iovec* parts, int count, off_t offset) noexcept nogil
cdef int read_full(FileOps* ops, int fd, void* data, size_t size, off_t offset) noexcept nogil
# Truncate the file to `size`, which also releases blocks reserved beyond it. Return 0 or -errno.
cdef int cut_file(int fd, off_t size) noexcept nogil
# Make creations, renames and removals in the directory `path` durable. Return 0 or -errno.
cdef int sync_dir(FileOps* ops, const char* path) noexcept nogil

cdef class Files:
    # The argument through which constructors get their FileOps. Tests pass a subclass whose `ops` fail as planned.
    cdef FileOps* ops
