"""FileOps: the one seam through which data reaches a disk, so that tests can plan faults. All calls answer -errno."""
from posix.types cimport off_t

cdef extern from "<sys/uio.h>" nogil:
    struct iovec:
        void* iov_base
        size_t iov_len

cdef enum:
    PRIVATE_MODE = 0o600         # of every file that is made here: what it holds is the bookie's alone

cdef struct FileOps:
    int (*open)(const char* path, int flags, int mode) noexcept nogil
    ssize_t (*pread)(int fd, void* buffer, size_t size, off_t offset) noexcept nogil
    ssize_t (*pwritev)(int fd, const iovec* parts, int count, off_t offset) noexcept nogil
    int (*fdatasync)(int fd) noexcept nogil
    int (*fallocate)(int fd, int mode, off_t offset, off_t size) noexcept nogil
    int (*rename)(const char* old, const char* new) noexcept nogil
    int (*unlink)(const char* path) noexcept nogil
    int (*close)(int fd) noexcept nogil
    void (*fdatasync_many)(const int* fds, int* results, int count) noexcept nogil   # as sync_many

cdef FileOps* real_ops() noexcept nogil
# Whether `fd` now goes past the page cache (O_DIRECT), or, `on` False, through it again; False changes nothing.
cdef bint set_direct(int fd, bint on) noexcept nogil
# Full transfers: short counts are continued, EINTR is repeated. 0, or -errno; reading past the end answers -ENODATA.
# A direct descriptor that refuses a write (EINVAL: a short one ended within a block, or the device has larger blocks)
# goes through the page cache from then on.
cdef int write_full(FileOps* ops, int fd, const void* data, size_t size, off_t offset) noexcept nogil
cdef int writev_full(FileOps* ops, int fd, iovec* parts, int count, off_t offset) noexcept nogil
cdef int read_full(FileOps* ops, int fd, void* data, size_t size, off_t offset) noexcept nogil
# End the file at `size`; blocks reserved behind go back to the disk. 0 or -errno.
cdef int cut_file(int fd, off_t size) noexcept nogil
cdef int sync_dir(FileOps* ops, const char* path) noexcept nogil

cdef class Files:
    # What engine constructors take; a test hands a subclass whose `ops` fail on a plan.
    cdef FileOps* ops
