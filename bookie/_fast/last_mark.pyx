"""The last mark of each journal, up to which it need not be replayed. The flush thread's."""
from libc.errno cimport EDQUOT, ENOSPC
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdio cimport snprintf
from posix.fcntl cimport O_CREAT, O_TRUNC, O_WRONLY

from bookie._fast.cursor cimport store_i64, store_u64
from bookie._fast.file cimport sync_dir, write_full
from bookie._fast.sync cimport bk_store
from bookie._fast.types cimport IO_ERROR, NO_SPACE, OK

cdef extern from "<fcntl.h>" nogil:
    int O_CLOEXEC

cdef enum:
    MARK_BYTES = 16


cdef int write_mark(Stores* stores, const char* path, const char* temporary, const char* directory, int64_t file_id,
                    uint64_t offset) noexcept nogil:
    """Temporary, sync, rename, directory sync: a mark is either the old one or the new one."""
    cdef uint8_t mark[MARK_BYTES]
    cdef int fd = stores.ops.open(temporary, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0o644)
    cdef int rc
    if fd < 0:
        return fd
    store_i64(mark, file_id)
    store_u64(mark + 8, offset)
    rc = write_full(stores.ops, fd, mark, MARK_BYTES, 0)
    if rc == 0:
        rc = stores.ops.fdatasync(fd)
    stores.ops.close(fd)
    if rc == 0:
        rc = stores.ops.rename(temporary, path)
    if rc == 0:
        rc = sync_dir(stores.ops, directory)
    return rc


cdef Status marks_write(Stores* stores, const int64_t* ids, const uint64_t* offsets) noexcept nogil:
    cdef char path[4096]
    cdef char temporary[4096]
    cdef uint32_t i, j
    cdef int rc
    for i in range(stores.count):
        for j in range(stores.journal_count):
            if stores.journal_count == 1:
                snprintf(path, sizeof(path), "%s/lastMark", stores.stores[i].directory)
            else:
                snprintf(path, sizeof(path), "%s/lastMark.%u", stores.stores[i].directory, j)
            snprintf(temporary, sizeof(temporary), "%s.tmp", path)
            rc = write_mark(stores, path, temporary, stores.stores[i].directory, ids[j], offsets[j])
            if rc == -ENOSPC or rc == -EDQUOT:
                bk_store(&stores.stores[i].no_space, 1)
                return NO_SPACE
            if rc != 0:
                return IO_ERROR
    return OK
