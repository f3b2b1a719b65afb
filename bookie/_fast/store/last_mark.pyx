"""The last mark of each journal; replay begins there. The flush thread's."""
from libc.errno cimport EDQUOT, ENODATA, ENOENT, ENOSPC
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdio cimport snprintf
from posix.fcntl cimport O_CREAT, O_RDWR, O_TRUNC, O_WRONLY

from bookie._fast.base.crc cimport crc32c
from bookie._fast.base.cursor cimport store_i64, store_u32, store_u64
from bookie._fast.base.file cimport PRIVATE_MODE, read_full, sync_dir, write_full
from bookie._fast.base.planted cimport PLANT_TRIM_BY_NEWEST, bk_planted
from bookie._fast.base.sync cimport bk_store, now_ns
from bookie._fast.base.types cimport IO_ERROR, NO_SPACE, OK
from bookie._fast.journal.files cimport journal_trim

cdef extern from "<fcntl.h>" nogil:
    int O_CLOEXEC

cdef enum:
    MARK_BYTES = 32              # Apache BookKeeper reads the first 16
    MARK_MAGIC = 0x424b4c4d      # BKLM
    PATH_BYTES = 4096


cdef void encode(uint8_t* mark, int64_t file_id, uint64_t offset, int64_t generation) noexcept nogil:
    store_i64(mark, file_id)
    store_u64(mark + 8, offset)
    store_u32(mark + 16, MARK_MAGIC)
    store_i64(mark + 24, generation)
    store_u32(mark + 20, crc32c(crc32c(0, mark, 20), mark + 24, 8))


cdef void path_of(const Storage* stores, const Store* store, uint32_t journal, char* path) noexcept nogil:
    if stores.journal_count == 1:
        snprintf(path, PATH_BYTES, "%s/lastMark", store.directory)
    else:
        snprintf(path, PATH_BYTES, "%s/lastMark.%u", store.directory, journal)


cdef int write_mark(Storage* stores, const char* path, const char* temporary, const char* directory,
                    const uint8_t* mark) noexcept nogil:
    """Write a temporary file, sync, rename, sync the directory: the mark is either the old one or the new one."""
    cdef int fd = stores.ops.open(temporary, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, PRIVATE_MODE)
    cdef int rc
    if fd < 0:
        return fd
    rc = write_full(stores.ops, fd, mark, MARK_BYTES, 0)
    if rc == 0:
        rc = stores.ops.fdatasync(fd)
    stores.ops.close(fd)
    if rc == 0:
        rc = stores.ops.rename(temporary, path)
    if rc == 0:
        rc = sync_dir(stores.ops, directory)
    return rc


cdef int overwrite_mark(Storage* stores, const char* path, const uint8_t* mark) noexcept nogil:
    """Overwrite a mark in place; if `mark` is NULL, with its own bytes."""
    cdef uint8_t there[MARK_BYTES]
    cdef const uint8_t* said = mark
    cdef int rc = 0
    cdef int fd = stores.ops.open(path, O_RDWR | O_CLOEXEC, 0)
    if fd < 0:
        return fd
    if mark == NULL:
        rc = read_full(stores.ops, fd, there, MARK_BYTES, 0)
        said = there
    if rc == 0:
        rc = write_full(stores.ops, fd, said, MARK_BYTES, 0)
    if rc == 0:
        rc = stores.ops.fdatasync(fd)
    stores.ops.close(fd)
    return rc


cdef Status outcome(int rc) noexcept nogil:
    return OK if rc == 0 else NO_SPACE if rc == -ENOSPC or rc == -EDQUOT else IO_ERROR


cdef void note(Store* store, uint32_t journal, int64_t file_id) noexcept nogil:
    bk_store(&store.backlog.marked[journal], file_id)
    bk_store(&store.backlog.marked_ns, now_ns())
    store.backlog.beyond = 0


cdef Status marks_overwrite(Storage* stores, Store* store, const int64_t* ids, const uint64_t* offsets) noexcept nogil:
    cdef char path[PATH_BYTES]
    cdef uint8_t mark[MARK_BYTES]
    cdef Status status
    cdef uint32_t j
    for j in range(stores.journal_count):
        path_of(stores, store, j, path)
        encode(mark, ids[j], offsets[j], stores.generation)
        status = outcome(overwrite_mark(stores, path, mark))
        if status != OK:
            return status
        note(store, j, ids[j])
    return OK


cdef Status marks_probe(Storage* stores, Store* store) noexcept nogil:
    cdef char path[PATH_BYTES]
    cdef uint32_t j
    cdef int rc
    for j in range(stores.journal_count):
        path_of(stores, store, j, path)
        rc = overwrite_mark(stores, path, NULL)
        if rc == -ENOENT or rc == -ENODATA:
            return NO_SPACE          # the disk was full before its first checkpoint; or a mark of 16 bytes only
        if rc != 0:
            return outcome(rc)
    return OK


cdef Status marks_write(Storage* stores, Store* store, const int64_t* ids, const uint64_t* offsets) noexcept nogil:
    """On a full disk, overwrite the marks, so that a start replays nothing that is indexed; return NO_SPACE anyway."""
    cdef char path[PATH_BYTES]
    cdef char temporary[PATH_BYTES + 4]
    cdef uint8_t mark[MARK_BYTES]
    cdef Status status
    cdef uint32_t j
    for j in range(stores.journal_count):
        path_of(stores, store, j, path)
        snprintf(temporary, sizeof(temporary), "%s.tmp", path)
        encode(mark, ids[j], offsets[j], stores.generation)
        status = outcome(write_mark(stores, path, temporary, store.directory, mark))
        if status == NO_SPACE:
            bk_store(&store.no_space, 1)
            if marks_probe(stores, store) == OK and marks_overwrite(stores, store, ids, offsets) == IO_ERROR:
                return IO_ERROR
        if status != OK:
            return status
        note(store, j, ids[j])
    return OK


cdef void marks_trim(Storage* stores) noexcept nogil:
    cdef int64_t least
    cdef uint32_t i, j
    for j in range(stores.journal_count):
        least = stores.stores[0].backlog.marked[j]
        for i in range(1, stores.count):
            least = min(least, stores.stores[i].backlog.marked[j])
            if bk_planted(PLANT_TRIM_BY_NEWEST):
                least = max(stores.stores[0].backlog.marked[j], stores.stores[i].backlog.marked[j])
        journal_trim(stores.journals[j], least)
