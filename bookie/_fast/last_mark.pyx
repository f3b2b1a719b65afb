"""The last mark of each journal, up to which it need not be replayed. The flush thread's."""
from libc.errno cimport EDQUOT, ENOSPC
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdio cimport snprintf
from posix.fcntl cimport O_CREAT, O_TRUNC, O_WRONLY

from bookie._fast.crc cimport crc32c
from bookie._fast.cursor cimport store_i64, store_u32, store_u64
from bookie._fast.file cimport sync_dir, write_full
from bookie._fast.sync cimport bk_store
from bookie._fast.types cimport IO_ERROR, NO_SPACE, OK

cdef extern from "<fcntl.h>" nogil:
    int O_CLOEXEC

cdef enum:
    MARK_BYTES = 32              # the first 16 of them are what Apache BookKeeper reads
    MARK_MAGIC = 0x424b4c4d      # BKLM


cdef int write_mark(Stores* stores, const char* path, const char* temporary, const char* directory, int64_t file_id,
                    uint64_t offset, int64_t generation) noexcept nogil:
    """Temporary, sync, rename, directory sync: a mark is either the old one or the new one."""
    cdef uint8_t mark[MARK_BYTES]
    cdef int fd = stores.ops.open(temporary, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0o644)
    cdef int rc
    if fd < 0:
        return fd
    store_i64(mark, file_id)
    store_u64(mark + 8, offset)
    store_u32(mark + 16, MARK_MAGIC)
    store_i64(mark + 24, generation)
    store_u32(mark + 20, crc32c(crc32c(0, mark, 20), mark + 24, 8))
    rc = write_full(stores.ops, fd, mark, MARK_BYTES, 0)
    if rc == 0:
        rc = stores.ops.fdatasync(fd)
    stores.ops.close(fd)
    if rc == 0:
        rc = stores.ops.rename(temporary, path)
    if rc == 0:
        rc = sync_dir(stores.ops, directory)
    return rc


cdef Status marks_write(Stores* stores, Store* store, const int64_t* ids, const uint64_t* offsets) noexcept nogil:
    cdef char path[4096]
    cdef char temporary[4096]
    cdef uint32_t j
    cdef int rc
    for j in range(stores.journal_count):
        if stores.journal_count == 1:
            snprintf(path, sizeof(path), "%s/lastMark", store.directory)
        else:
            snprintf(path, sizeof(path), "%s/lastMark.%u", store.directory, j)
        snprintf(temporary, sizeof(temporary), "%s.tmp", path)
        rc = write_mark(stores, path, temporary, store.directory, ids[j], offsets[j], stores.generation)
        if rc == -ENOSPC or rc == -EDQUOT:
            bk_store(&store.no_space, 1)
            return NO_SPACE
        if rc != 0:
            return IO_ERROR
        store.marked[j] = ids[j]
    return OK
