"""The entry log writer: records, ledgers map, header, `lastId` (docs/formats/entry-log.md). One thread."""
import os

cimport cython
from libc.errno cimport EDQUOT, EINTR, ENOSPC, ENOSYS, EOPNOTSUPP
from libc.stdint cimport UINT64_MAX, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdio cimport snprintf
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy, memset

from bookie._fast.base.bounds cimport LOG_BYTES_MAX
from bookie._fast.base.crash_steps cimport (
    STEP_HEADER_SYNCED, STEP_HEADER_WRITTEN, STEP_MAP_SYNCED, STEP_MAP_WRITTEN, step,
)
from bookie._fast.base.cursor cimport store_i64, store_u32, store_u64
from bookie._fast.base.file cimport FileOps, Files, cut_file, iovec, set_direct, write_full
from bookie._fast.base.planted cimport PLANT_TAIL_DROPPED, bk_planted
from bookie._fast.base.sync_many cimport SYNCS_MOST
from bookie._fast.base.types cimport LENGTH_PREFIX, Status
from bookie._fast.entrylog.ids cimport (
    LOG_USER_FLUSH,
    log_ids,
    log_ids_close,
    log_ids_create,
    log_ids_directory,
    log_ids_drop,
    log_ids_free,
    log_ids_is_open,
    log_ids_next,
    log_ids_ops,
    log_ids_publish,
    log_ids_settle,
)
from bookie._fast.entrylog.ledger_bytes cimport (
    LEDGER_MAP_BYTES_LEAST,
    LedgerBytes,
    LedgerMap,
    ledger_map_add,
    ledger_map_clear,
    ledger_map_free,
    ledger_map_reserve,
    ledger_map_sorted,
)
from bookie._fast.entrylog.scan cimport (
    LOG_HEADER_BYTES, LOG_MAGIC, LOG_MAP_ENTRY, LOG_SPECIAL_LEDGER, LOG_VERSION, log_check,
)

cdef extern from "<fcntl.h>" nogil:
    int FALLOC_FL_KEEP_SIZE

cdef extern from "<stdlib.h>" nogil:
    int posix_memalign(void** out, size_t alignment, size_t size) noexcept

cdef enum:
    PATH_BYTES = 4096
    BUFFER_BYTES = LOG_BUFFER_BYTES      # size of a write in a hurry: best for the disk
    CALM_BYTES = 0x80000         # size of a write otherwise: a write of the journal does not wait long behind it
    BLOCK_BYTES = 4096           # direct writes are multiples of this
    RESERVE_BYTES = 0x4000000    # 64 MiB: disk blocks are reserved in steps of this
    MAP_OFFSET_AT = 8            # i64 map offset, i32 ledger count: 12 bytes, written when a log is closed
    MAP_RECORD_FIXED = 24        # length word, -1, -2, count
    MAP_LEDGER_BYTES = 16
    RUN_BYTES_MAX = LOG_BYTES_MAX - LOG_HEADER_BYTES - MAP_RECORD_FIXED - MAP_LEDGER_BYTES


cdef struct LogBuffer:
    uint8_t* bytes               # BUFFER_BYTES, aligned
    EntryLogWriter* holder       # the writer whose records it holds; NULL if it holds none

cdef struct EntryLogWriter:
    LogIds* ids
    LogUser user
    FileOps* ops
    uint32_t log_id              # of `fd`
    int fd                       # -1 between logs
    uint64_t size_limit
    uint64_t position            # where the next record goes
    uint64_t synced              # everything below is on disk
    LogBuffer* shared
    uint8_t* buffer              # the bytes of `shared`: if this is the holder, the unwritten records from `written` on
    uint64_t chunk               # it is written when it holds this many bytes
    uint64_t written             # a multiple of BLOCK_BYTES; everything below is in the file
    uint64_t out                 # everything below is in the file, including a partial last block
    uint64_t reserved            # disk blocks below are reserved; UINT64_MAX if the file system does not support that
    bint one_of_many
    uint64_t map_offset          # of a log that has its map
    bint complete                # its header names the map
    bint unsynced_header         # the header was written on its own and is not synced
    Status failed
    LedgerMap ledgers
    uint8_t tail[BLOCK_BYTES]    # the unwritten records while another writer has the buffer


cdef LogBuffer* log_buffer() noexcept nogil:
    cdef LogBuffer* shared = <LogBuffer*> calloc(1, sizeof(LogBuffer))
    if shared != NULL and posix_memalign(<void**> &shared.bytes, BLOCK_BYTES, BUFFER_BYTES) != 0:
        free(shared)
        return NULL
    return shared


cdef void log_buffer_free(LogBuffer* buffer) noexcept nogil:
    if buffer != NULL:
        free(buffer.bytes)
        free(buffer)


cdef EntryLogWriter* writer_new(LogIds* ids, LogUser user, LogBuffer* buffer, uint64_t size_limit) noexcept nogil:
    cdef EntryLogWriter* writer = <EntryLogWriter*> calloc(1, sizeof(EntryLogWriter))
    if writer == NULL:
        return NULL
    writer.ids = ids
    writer.user = user
    writer.ops = log_ids_ops(ids)
    writer.shared = buffer
    writer.buffer = buffer.bytes
    writer.chunk = CALM_BYTES
    writer.fd = -1
    writer.size_limit = size_limit
    writer.failed = Status.OK
    return writer


cdef void writer_free(EntryLogWriter* writer) noexcept nogil:
    if writer == NULL:
        return
    close_log(writer)
    ledger_map_free(&writer.ledgers)
    free(writer)


cdef Status fail(EntryLogWriter* writer, int rc) noexcept nogil:
    writer.failed = Status.NO_SPACE if rc == -ENOSPC or rc == -EDQUOT else Status.IO_ERROR
    return writer.failed


cdef void path_of(EntryLogWriter* writer, char* path) noexcept nogil:
    snprintf(path, PATH_BYTES, "%s/%x.log", log_ids_directory(writer.ids), writer.log_id)


cdef void close_log(EntryLogWriter* writer) noexcept nogil:
    """Close the log without a map, cut off at its last sync; remove the file if nothing was synced."""
    cdef char path[PATH_BYTES]
    if writer.fd >= 0:
        if writer.synced == 0:
            path_of(writer, path)
            writer.ops.unlink(path)
        elif not writer.complete:
            cut_file(writer.fd, writer.synced)
        writer.ops.close(writer.fd)
        if writer.synced == 0:
            log_ids_drop(writer.ids, writer.log_id)
        else:
            log_ids_close(writer.ids, writer.log_id)
    writer.fd = -1
    writer.position = writer.written = writer.synced = writer.out = 0
    writer.complete = False
    writer.unsynced_header = False
    if writer.shared.holder == writer:
        writer.shared.holder = NULL
    ledger_map_clear(&writer.ledgers)


cdef void give_back(EntryLogWriter* writer) noexcept nogil:
    """Leave the buffer to another writer; less than a block of it is not written and goes to `tail`."""
    cdef int rc
    if writer.failed == Status.OK:
        rc = write_buffer(writer, False)
        if rc < 0:
            fail(writer, rc)
        else:
            memcpy(writer.tail, writer.buffer, writer.position - writer.written)
    writer.shared.holder = NULL


cdef void borrow(EntryLogWriter* writer) noexcept nogil:
    """Take the buffer, and put this writer's unwritten records into it."""
    cdef LogBuffer* shared = writer.shared
    if shared.holder == writer:
        return
    if shared.holder != NULL:
        give_back(shared.holder)
    if not bk_planted(PLANT_TAIL_DROPPED):
        memcpy(shared.bytes, writer.tail, writer.position - writer.written)
    shared.holder = writer


cdef Status start_log(EntryLogWriter* writer) noexcept nogil:
    """Begin a new log. The writer holds the buffer."""
    cdef char path[PATH_BYTES]
    cdef int fd = log_ids_create(writer.ids, writer.user, &writer.log_id)
    cdef int rc = 0
    if fd < 0:
        return fail(writer, fd)
    # Direct I/O takes half the processor time and leaves the page cache to reads, where the file system supports it.
    set_direct(fd, True)
    memset(writer.buffer, 0, BLOCK_BYTES)
    store_u32(writer.buffer, LOG_MAGIC)
    store_u32(writer.buffer + 4, LOG_VERSION)
    if not writer.one_of_many:
        rc = write_full(writer.ops, fd, writer.buffer, BLOCK_BYTES, 0)
        if rc == 0:
            rc = log_ids_publish(writer.ids, writer.log_id)
    if rc < 0:
        writer.ops.close(fd)
        path_of(writer, path)
        writer.ops.unlink(path)
        log_ids_drop(writer.ids, writer.log_id)
        return fail(writer, rc)
    writer.fd = fd
    writer.position = LOG_HEADER_BYTES
    writer.synced = writer.written = writer.out = 0
    writer.reserved = UINT64_MAX if writer.one_of_many else LOG_HEADER_BYTES
    return Status.OK


cdef int reserve_blocks(EntryLogWriter* writer, uint64_t end) noexcept nogil:
    """Reserve disk blocks up to `end` and more, without changing the size; on a nearly full disk only to `end`."""
    cdef uint64_t goal
    cdef int rc
    end = (end + BLOCK_BYTES - 1) // BLOCK_BYTES * BLOCK_BYTES     # the last block is written in full
    if end <= writer.reserved:
        return 0
    goal = max(end, min(writer.reserved + RESERVE_BYTES, writer.size_limit))
    while True:
        rc = writer.ops.fallocate(writer.fd, FALLOC_FL_KEEP_SIZE, writer.reserved, goal - writer.reserved)
        if rc == -EINTR:
            continue
        if (rc == -ENOSPC or rc == -EDQUOT) and goal > end:
            goal = end
            continue
        break
    if rc == -EOPNOTSUPP or rc == -ENOSYS:
        writer.reserved = UINT64_MAX
        return 0
    if rc == 0:
        writer.reserved = goal
    return rc


cdef int write_buffer(EntryLogWriter* writer, bint tail) noexcept nogil:
    """Write the buffer's whole blocks; with `tail` also the last one, padded with zeros and kept to be continued."""
    cdef uint64_t held = writer.position - writer.written
    cdef uint64_t whole = held - held % BLOCK_BYTES
    cdef uint64_t size = whole
    cdef int rc
    if tail and held > whole:
        memset(writer.buffer + held, 0, whole + BLOCK_BYTES - held)
        size += BLOCK_BYTES
    if size == 0:
        return 0
    rc = write_full(writer.ops, writer.fd, writer.buffer, size, writer.written)
    if rc < 0:
        return rc
    if whole:
        memcpy(writer.buffer, writer.buffer + whole, held - whole)
        writer.written += whole
    writer.out = writer.position if tail else writer.written
    return 0


cdef int write_bytes(EntryLogWriter* writer, const uint8_t* data, uint64_t size) noexcept nogil:
    """Collect bytes in the buffer, which is written whenever it holds a chunk."""
    cdef uint64_t held, part, limit
    cdef int rc
    while size > 0:
        held = writer.position - writer.written
        limit = writer.chunk if held < writer.chunk else BUFFER_BYTES
        part = limit - held
        if part > size:
            part = size
        memcpy(writer.buffer + held, data, part)
        writer.position += part
        data += part
        size -= part
        if held + part == limit:
            rc = write_buffer(writer, False)
            if rc < 0:
                return rc
    return 0


cdef void writer_hurry(EntryLogWriter* writer, bint hurry) noexcept nogil:
    writer.chunk = BUFFER_BYTES if hurry else CALM_BYTES


cdef int write_parts(EntryLogWriter* writer, const iovec* parts, int count) noexcept nogil:
    cdef int rc = 0
    cdef int i
    for i in range(count):
        rc = write_bytes(writer, <const uint8_t*> parts[i].iov_base, parts[i].iov_len)
        if rc < 0:
            break
    return rc


cdef bint parts_hold(const iovec* parts, int count, uint64_t size) noexcept nogil:
    cdef int i
    for i in range(count):
        if parts[i].iov_len > size:
            return False
        size -= parts[i].iov_len
    return size == 0


cdef Status writer_append(EntryLogWriter* writer, int64_t ledger, iovec* parts, int count, uint64_t size,
                          uint32_t* log_id, uint64_t* offset) noexcept nogil:
    cdef Status status
    cdef uint64_t start
    cdef int rc
    if writer.failed != Status.OK:
        return writer.failed
    if size == 0 or size > RUN_BYTES_MAX or not parts_hold(parts, count, size):
        return Status.BAD_REQUEST
    if writer.fd >= 0 and writer.position > LOG_HEADER_BYTES and writer.position + size > writer.size_limit:
        status = writer_rotate(writer)
        if status != Status.OK:
            return status
    borrow(writer)
    status = ledger_map_reserve(&writer.ledgers)
    if status == Status.OK and writer.fd < 0:
        status = start_log(writer)
    if status != Status.OK:
        return status
    start = writer.position
    rc = reserve_blocks(writer, start + size)
    if rc == 0:
        rc = write_parts(writer, parts, count)
    if rc < 0:
        return fail(writer, rc)
    log_id[0] = writer.log_id
    offset[0] = start
    ledger_map_add(&writer.ledgers, ledger, size)
    return Status.OK


cdef Status writer_write_out(EntryLogWriter* writer) noexcept nogil:
    cdef int rc
    if writer.failed != Status.OK or writer.out == writer.position:
        return writer.failed
    borrow(writer)
    rc = write_buffer(writer, True)
    if rc == 0 and writer.complete:
        rc = cut_file(writer.fd, writer.position)
    return Status.OK if rc == 0 else fail(writer, rc)


cdef Status sync_files(EntryLogWriter** writers, int count) noexcept nogil:
    """Sync the written files. Each writer remembers its own failure; if there are several, IO_ERROR is returned."""
    cdef EntryLogWriter* waiting[SYNCS_MOST]
    cdef int fds[SYNCS_MOST]
    cdef int results[SYNCS_MOST]
    cdef Status status = Status.OK
    cdef int n = 0
    cdef int i
    for i in range(count):
        if writers[i].failed != Status.OK:
            return writers[i].failed
        if writers[i].unsynced_header or writers[i].synced != writers[i].position:
            waiting[n] = writers[i]
            fds[n] = writers[i].fd
            n += 1
    if n:
        waiting[0].ops.fdatasync_many(fds, results, n)
    for i in range(n):
        if results[i] < 0:
            fail(waiting[i], results[i])
            status = status if status == Status.IO_ERROR else waiting[i].failed
        else:
            waiting[i].synced = waiting[i].position
            waiting[i].unsynced_header = False
    return status


cdef Status each(EntryLogWriter** writers, int count, Status (*act)(EntryLogWriter*) noexcept nogil) noexcept nogil:
    cdef Status status = Status.OK
    cdef int i = 0
    while i < count and status == Status.OK:
        status = act(writers[i])
        i += 1
    return status


cdef Status writers_sync(EntryLogWriter** writers, int count) noexcept nogil:
    cdef Status status = each(writers, count, writer_write_out)
    return sync_files(writers, count) if status == Status.OK else status


cdef Status writer_sync(EntryLogWriter* writer) noexcept nogil:
    return writers_sync(&writer, 1)


cdef int write_map(EntryLogWriter* writer) noexcept nogil:
    """Write the ledgers map after the last record, MAP_LEDGERS_MAX ledgers in each of its records."""
    cdef LedgerBytes* ledgers = ledger_map_sorted(&writer.ledgers)
    cdef uint8_t out[MAP_RECORD_FIXED]
    cdef size_t count = writer.ledgers.count
    cdef size_t i, n
    cdef int rc = 0
    for i in range(count):
        if i % MAP_LEDGERS_MAX == 0:
            n = count - i if count - i < MAP_LEDGERS_MAX else MAP_LEDGERS_MAX
            store_u32(out, <uint32_t> (MAP_RECORD_FIXED - LENGTH_PREFIX + MAP_LEDGER_BYTES * n))
            store_i64(out + 4, LOG_SPECIAL_LEDGER)
            store_i64(out + 12, LOG_MAP_ENTRY)
            store_u32(out + 20, <uint32_t> n)
            rc = write_bytes(writer, out, MAP_RECORD_FIXED)
        if rc == 0:
            store_i64(out, ledgers[i].ledger)
            store_u64(out + 8, ledgers[i].bytes)
            rc = write_bytes(writer, out, MAP_LEDGER_BYTES)
        if rc < 0:
            break
    return rc


cdef void name_map(EntryLogWriter* writer, uint8_t* closing) noexcept nogil:
    """Write the 12 bytes that the header of a closed log has: the map's offset and its number of ledgers."""
    store_u64(closing, writer.map_offset)
    store_u32(closing + 8, <uint32_t> writer.ledgers.count)


cdef Status writer_end(EntryLogWriter* writer) noexcept nogil:
    cdef int rc
    if writer.failed != Status.OK or writer.fd < 0:
        return writer.failed
    borrow(writer)
    writer.map_offset = writer.position
    rc = write_map(writer)
    if rc == 0 and writer.one_of_many and writer.written == 0 and writer.out == 0:
        # None of its bytes are on disk, and nothing relies on them before the only sync: the header need not wait for
        # the map.
        name_map(writer, writer.buffer + MAP_OFFSET_AT)
        writer.complete = True
    return Status.OK if rc == 0 else fail(writer, rc)


cdef Status write_header(EntryLogWriter* writer) noexcept nogil:
    """Write the closing bytes into the header, through the page cache since they are not a whole block."""
    cdef uint8_t closing[12]
    cdef int rc
    if writer.failed != Status.OK or writer.fd < 0 or writer.complete:
        return writer.failed
    rc = cut_file(writer.fd, writer.synced)
    if rc == 0:
        set_direct(writer.fd, False)
        name_map(writer, closing)
        rc = write_full(writer.ops, writer.fd, closing, sizeof(closing), MAP_OFFSET_AT)
    if rc < 0:
        return fail(writer, rc)
    writer.complete = True
    writer.unsynced_header = True
    return Status.OK


cdef Status writers_finish(EntryLogWriter** writers, int count) noexcept nogil:
    cdef Status status = each(writers, count, writer_write_out)
    cdef int i
    if status == Status.OK:
        step(STEP_MAP_WRITTEN)
        status = sync_files(writers, count)
    if status == Status.OK:
        step(STEP_MAP_SYNCED)
        status = each(writers, count, write_header)
    if status == Status.OK:
        step(STEP_HEADER_WRITTEN)
        status = sync_files(writers, count)
    if status == Status.OK:
        step(STEP_HEADER_SYNCED)
        for i in range(count):
            close_log(writers[i])
    return status


cdef Status writer_rotate(EntryLogWriter* writer) noexcept nogil:
    cdef Status status
    if writer.failed == Status.NO_SPACE:
        close_log(writer)
        writer.failed = Status.OK
        return Status.OK
    status = writer_end(writer)
    return writers_finish(&writer, 1) if status == Status.OK and writer.fd >= 0 else status


cdef void writer_give_up(EntryLogWriter* writer, uint64_t keep) noexcept nogil:
    if writer.failed == Status.IO_ERROR:
        return
    writer.failed = Status.OK
    if keep < writer.synced and not (keep and writer.complete):
        writer.synced = keep
    close_log(writer)


cdef void writer_one_of_many(EntryLogWriter* writer) noexcept nogil:
    writer.one_of_many = True


cdef uint64_t writer_bytes() noexcept nogil:
    return sizeof(EntryLogWriter) + LEDGER_MAP_BYTES_LEAST


cdef uint32_t writer_log_id(EntryLogWriter* writer) noexcept nogil:
    return writer.log_id if writer.fd >= 0 else log_ids_next(writer.ids)


cdef uint64_t writer_size(EntryLogWriter* writer) noexcept nogil:
    return writer.position


@cython.no_gc_clear
cdef class EntryLog:
    """A writer for tests and tools; the store calls the functions above. One thread at a time.

    `beside` is another EntryLog of the same directory and thread, with which it shares ids and buffer.
    """
    cdef EntryLogWriter* writer
    cdef LogIds* ids             # owned, like `buffer`, unless `beside` was given
    cdef LogBuffer* buffer
    cdef bint owns
    cdef EntryLog beside
    cdef Files files
    cdef object directory

    def __cinit__(self, directory, uint32_t next_id=0, uint64_t size_limit=1 << 30, Files files=None,
                  EntryLog beside=None):
        self.directory = directory
        self.files = files if files is not None else Files()
        self.beside = beside
        self.owns = beside is None
        if self.owns:
            self.ids = log_ids(self.files.ops, os.fsencode(directory), next_id)
            self.buffer = log_buffer()
        else:
            self.ids = beside.ids
            self.buffer = beside.buffer
        if self.ids != NULL and self.buffer != NULL:
            self.writer = writer_new(self.ids, LOG_USER_FLUSH, self.buffer, size_limit)
        if self.writer == NULL:
            raise MemoryError(f"{directory}: no memory for an entry log writer, or the path is too long")

    def __dealloc__(self):
        writer_free(self.writer)
        if self.owns:
            log_buffer_free(self.buffer)
            log_ids_free(self.ids)

    @property
    def current_id(self):
        return writer_log_id(self.writer)

    @property
    def size(self):
        return writer_size(self.writer)

    def is_open(self, uint32_t log_id):
        """Return whether the log may still change, or waits for `settle`."""
        return log_ids_is_open(self.ids, log_id)

    def settle(self):
        """Tell that the index is committed: closed logs of this directory's writers are no longer open."""
        log_ids_settle(self.ids, LOG_USER_FLUSH)

    def append(self, int64_t ledger, list entries):
        """Append entries (bytes) of one ledger as one run; return (log id, offset of the first length word)."""
        cdef int count = 2 * len(entries)
        cdef iovec* parts = <iovec*> malloc((count + 1) * sizeof(iovec))
        cdef uint8_t* prefixes = <uint8_t*> malloc(4 * len(entries) + 1)
        cdef uint32_t log_id = 0
        cdef uint64_t offset = 0
        cdef uint64_t size = 0
        cdef Status status = Status.NO_MEMORY
        cdef int i
        try:
            for i in range(0 if parts == NULL or prefixes == NULL else len(entries)):
                store_u32(prefixes + 4 * i, len(entries[i]))
                parts[2 * i].iov_base = prefixes + 4 * i
                parts[2 * i].iov_len = LENGTH_PREFIX
                parts[2 * i + 1].iov_base = <char*> entries[i]
                parts[2 * i + 1].iov_len = len(entries[i])
                size += LENGTH_PREFIX + <uint64_t> len(entries[i])
            if parts != NULL and prefixes != NULL:
                with nogil:
                    status = writer_append(self.writer, ledger, parts, count, size, &log_id, &offset)
        finally:
            free(parts)
            free(prefixes)
        log_check(status, self.directory)
        return log_id, offset

    def sync(self):
        cdef Status status
        with nogil:
            status = writer_sync(self.writer)
        log_check(status, self.directory)

    def rotate(self):
        cdef Status status
        with nogil:
            status = writer_rotate(self.writer)
        log_check(status, self.directory)
