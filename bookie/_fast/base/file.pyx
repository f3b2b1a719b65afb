"""The real functions of FileOps, and loops on top of any FileOps that transfer all bytes."""
from libc.errno cimport EINTR, EINVAL, EIO, EMFILE, ENODATA, errno
from posix.fcntl cimport F_GETFL, F_SETFL, O_DIRECTORY, O_RDONLY, fcntl
from posix.types cimport off_t

from bookie._fast.base.spare_descriptors cimport spare_become, spare_give_up, spares_fill
from bookie._fast.base.sync_many cimport sync_many

cdef extern from "<fcntl.h>" nogil:
    int O_DIRECT
    int c_open "open"(const char*, int, int) noexcept
    int c_fallocate "fallocate"(int, int, off_t, off_t) noexcept

cdef extern from "<unistd.h>" nogil:
    ssize_t c_pread "pread"(int, void*, size_t, off_t) noexcept
    int c_fdatasync "fdatasync"(int) noexcept
    int c_unlink "unlink"(const char*) noexcept
    int c_close "close"(int) noexcept
    int ftruncate(int, off_t) noexcept

cdef extern from "<stdio.h>" nogil:
    int c_rename "rename"(const char*, const char*) noexcept

cdef extern from "<sys/uio.h>" nogil:
    ssize_t c_pwritev "pwritev"(int, const iovec*, int, off_t) noexcept

cdef enum:
    IOV_MAX = 1024


cdef int real_open(const char* path, int flags, int mode) noexcept nogil:
    cdef int fd = c_open(path, flags, mode)
    while fd < 0 and errno == EMFILE and spare_give_up():
        fd = c_open(path, flags, mode)
    if fd < 0:
        return -errno
    spares_fill()
    return fd


cdef ssize_t real_pread(int fd, void* buffer, size_t size, off_t offset) noexcept nogil:
    cdef ssize_t n = c_pread(fd, buffer, size, offset)
    return n if n >= 0 else -errno


cdef ssize_t real_pwritev(int fd, const iovec* parts, int count, off_t offset) noexcept nogil:
    cdef ssize_t n = c_pwritev(fd, parts, count, offset)
    return n if n >= 0 else -errno


cdef int real_fdatasync(int fd) noexcept nogil:
    return 0 if c_fdatasync(fd) == 0 else -errno


cdef int real_fallocate(int fd, int mode, off_t offset, off_t size) noexcept nogil:
    return 0 if c_fallocate(fd, mode, offset, size) == 0 else -errno


cdef int real_rename(const char* old, const char* new) noexcept nogil:
    return 0 if c_rename(old, new) == 0 else -errno


cdef int real_unlink(const char* path) noexcept nogil:
    return 0 if c_unlink(path) == 0 else -errno


cdef int real_close(int fd) noexcept nogil:
    return 0 if spare_become(fd) or c_close(fd) == 0 else -errno


cdef FileOps real
real.open = real_open
real.pread = real_pread
real.pwritev = real_pwritev
real.fdatasync = real_fdatasync
real.fdatasync_many = sync_many
real.fallocate = real_fallocate
real.rename = real_rename
real.unlink = real_unlink
real.close = real_close


cdef FileOps* real_ops() noexcept nogil:
    return &real


cdef bint set_direct(int fd, bint on) noexcept nogil:
    cdef int flags = fcntl(fd, F_GETFL)
    cdef int wanted = flags | O_DIRECT if on else flags & ~O_DIRECT
    return flags >= 0 and wanted != flags and fcntl(fd, F_SETFL, wanted) == 0


cdef int write_full(FileOps* ops, int fd, const void* data, size_t size, off_t offset) noexcept nogil:
    cdef iovec part
    part.iov_base = <void*> data
    part.iov_len = size
    return writev_full(ops, fd, &part, 1, offset)


cdef int writev_full(FileOps* ops, int fd, iovec* parts, int count, off_t offset) noexcept nogil:
    """Consume `parts`: a short write advances the iovec in which it stopped."""
    cdef ssize_t n
    cdef int batch
    while count > 0:
        if parts.iov_len == 0:
            parts += 1
            count -= 1
            continue
        batch = count if count < IOV_MAX else IOV_MAX
        n = ops.pwritev(fd, parts, batch, offset)
        if n == -EINTR or (n == -EINVAL and set_direct(fd, False)):
            continue
        if n < 0:
            return <int> n
        if n == 0:
            return -EIO
        offset += n
        while n > 0:
            if <size_t> n < parts.iov_len:
                parts.iov_base = <char*> parts.iov_base + n
                parts.iov_len -= n
                break
            n -= parts.iov_len
            parts += 1
            count -= 1
    return 0


cdef int read_full(FileOps* ops, int fd, void* data, size_t size, off_t offset) noexcept nogil:
    cdef ssize_t n
    cdef char* pos = <char*> data
    while size > 0:
        n = ops.pread(fd, pos, size, offset)
        if n == -EINTR:
            continue
        if n < 0:
            return <int> n
        if n == 0:
            return -ENODATA
        pos += n
        offset += n
        size -= n
    return 0


cdef int cut_file(int fd, off_t size) noexcept nogil:
    while ftruncate(fd, size) < 0:
        if errno != EINTR:
            return -errno
    return 0


cdef int sync_dir(FileOps* ops, const char* path) noexcept nogil:
    cdef int fd = ops.open(path, O_RDONLY | O_DIRECTORY, 0)
    cdef int rc
    if fd < 0:
        return fd
    rc = ops.fdatasync(fd)
    ops.close(fd)
    return rc


cdef class Files:
    """File operations on the real disk. Subclasses in tests replace `ops`."""

    def __cinit__(self):
        self.ops = &real
