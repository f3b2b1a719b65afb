"""The scan of entry logs in the default and direct-I/O layouts (docs/formats/entry-log.md). Any thread."""
import errno as errors
import os
from collections import namedtuple

import numpy as np

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memset

from bookie._fast.base.bounds cimport RECORD_BYTES_MAX
from bookie._fast.base.cursor cimport load_i32, load_i64, load_u32
from bookie._fast.base.file cimport FileOps, Files
from bookie._fast.base.open_file cimport open_to_read
from bookie._fast.base.types cimport ENTRY_HEADER_MIN, LENGTH_PREFIX, Status
from bookie._fast.base.window cimport (
    WINDOW_CHUNK,
    Window,
    all_zeros,
    window_at,
    window_close,
    window_load,
    window_open,
    window_pace,
)

cdef enum:
    DIRECT_BLOCK = 4096
    DIRECT_DUMMY_BYTES = 3068    # size of the record at 1024 that marks the direct-I/O layout and fills the block


cdef Status zeros_to_end(Window* window, uint64_t pos) noexcept nogil:
    """Return END if the file holds only zeros from `pos` on, else TORN."""
    cdef size_t got = 1
    cdef Status status
    while True:
        status = window_load(window, pos, pos, WINDOW_CHUNK, &got)
        if status != Status.OK:
            return status
        if got == 0:
            return Status.END
        if not all_zeros(window_at(window, pos), got):
            return Status.TORN
        pos += got


cdef Status check_header(Window* window, bint* direct) noexcept nogil:
    """Return OK; END or TORN for a file without records; CORRUPT if it is not an entry log of a known version."""
    cdef size_t got
    cdef const uint8_t* header
    cdef Status status = window_load(window, 0, 0, LOG_HEADER_BYTES + LENGTH_PREFIX + 8, &got)
    if status != Status.OK:
        return status
    if got < LOG_HEADER_BYTES:
        return Status.END
    header = window_at(window, 0)
    if load_u32(header) == 0:
        return zeros_to_end(window, 0)      # preallocated by Java's bookie, or its first page never reached the disk
    if load_u32(header) != LOG_MAGIC or load_u32(header + 4) > LOG_VERSION:
        return Status.CORRUPT
    direct[0] = (got == LOG_HEADER_BYTES + LENGTH_PREFIX + 8
                 and load_i32(header + LOG_HEADER_BYTES) == DIRECT_DUMMY_BYTES
                 and load_i64(header + LOG_HEADER_BYTES + LENGTH_PREFIX) == LOG_SPECIAL_LEDGER)
    return Status.OK


cdef Status read_record(Window* window, bint direct, uint64_t* pos, LogRecord* record) noexcept nogil:
    """Read the record at *pos, which the direct layout may first move to the next block. OK, END, TORN or an error."""
    cdef size_t got
    cdef int32_t length
    cdef Status status
    while True:
        status = window_load(window, pos[0], pos[0], LENGTH_PREFIX, &got)
        if status != Status.OK:
            return status
        if got < LENGTH_PREFIX:
            return zeros_to_end(window, pos[0])
        length = load_i32(window_at(window, pos[0]))
        if length >= 0 or not direct:
            break
        if pos[0] % DIRECT_BLOCK == 0:
            return Status.TORN
        pos[0] += DIRECT_BLOCK - pos[0] % DIRECT_BLOCK
    if length == 0:
        return Status.END if direct else zeros_to_end(window, pos[0])
    if length < ENTRY_HEADER_MIN or length > RECORD_BYTES_MAX:
        return Status.TORN
    status = window_load(window, pos[0], pos[0], LENGTH_PREFIX + <size_t> length, &got)
    if status != Status.OK:
        return status
    if got < LENGTH_PREFIX + <size_t> length:
        return Status.TORN
    record.data = window_at(window, pos[0]) + LENGTH_PREFIX
    record.ledger = load_i64(record.data)
    record.entry = load_i64(record.data + 8)
    record.offset = pos[0]
    record.length = length
    if record.ledger < LOG_SPECIAL_LEDGER or (record.ledger >= 0 and record.entry < 0):
        return Status.TORN
    return Status.OK


cdef Status log_open(LogCursor* cursor, FileOps* ops, int fd, uint64_t start) noexcept nogil:
    return log_open_paced(cursor, ops, fd, start, NULL)


cdef Status log_open_paced(LogCursor* cursor, FileOps* ops, int fd, uint64_t start, Pace* pace) noexcept nogil:
    cdef Status status = window_open(&cursor.window, ops, fd, RECORD_BYTES_MAX + WINDOW_CHUNK)
    cursor.direct = False
    cursor.pos = start
    if status == Status.OK and pace != NULL:
        status = window_pace(&cursor.window, pace)
    if status == Status.OK:
        status = check_header(&cursor.window, &cursor.direct)
    if start == 0:
        cursor.pos = DIRECT_BLOCK if cursor.direct else LOG_HEADER_BYTES if status == Status.OK else 0
    return status


cdef Status log_next(LogCursor* cursor, LogRecord* record) noexcept nogil:
    cdef Status status = read_record(&cursor.window, cursor.direct, &cursor.pos, record)
    if status == Status.OK:
        cursor.pos += LENGTH_PREFIX + record.length
    return status


cdef bint log_held(const LogCursor* cursor) noexcept nogil:
    cdef uint64_t held = cursor.window.base + cursor.window.size - cursor.pos
    cdef int32_t length
    if cursor.pos < cursor.window.base or cursor.pos - cursor.window.base > cursor.window.size or held < LENGTH_PREFIX:
        return False
    length = load_i32(cursor.window.data + (cursor.pos - cursor.window.base))
    return length > 0 and <uint64_t> length <= held - LENGTH_PREFIX


cdef void log_close(LogCursor* cursor) noexcept nogil:
    window_close(&cursor.window)


cdef Status scan_log(FileOps* ops, int fd, uint64_t start, log_record_fn each, void* context,
                     LogScan* result) noexcept nogil:
    cdef LogCursor cursor
    cdef LogRecord record
    cdef Status status = log_open(&cursor, ops, fd, start)
    memset(result, 0, sizeof(LogScan))
    while status == Status.OK:
        result.end = cursor.pos
        status = log_next(&cursor, &record)
        if status != Status.OK or record.ledger == LOG_SPECIAL_LEDGER:
            continue
        status = each(context, &record)
        if status != Status.OK:
            log_close(&cursor)
            return status
        result.records += 1
        result.bytes += LENGTH_PREFIX + record.length
    log_close(&cursor)
    result.torn = status == Status.TORN
    return Status.OK if status == Status.END or status == Status.TORN else status


cdef object log_check(Status status, path):
    """Raise the exception for a status; do nothing for OK."""
    if status == Status.OK:
        return None
    if status == Status.CORRUPT:
        raise ValueError(f"{path}: not an entry log of version 0 or {LOG_VERSION}; move it out of the directory")
    if status == Status.NO_MEMORY:
        raise MemoryError(f"{path}: no memory to read or write the entry log")
    if status == Status.BAD_REQUEST:
        raise ValueError(f"{path}: an append must hold at least 1 record and fit into one log")
    code = errors.ENOSPC if status == Status.NO_SPACE else errors.EIO
    raise OSError(code, os.strerror(code), str(path))


LogChunk = namedtuple("LogChunk", "ledger entry offset length end torn more")

cdef struct Columns:
    int64_t* ledger
    int64_t* entry
    uint64_t* offset
    uint32_t* length
    size_t rows
    size_t rows_max


cdef Status collect(void* context, const LogRecord* record) noexcept nogil:
    cdef Columns* columns = <Columns*> context
    if columns.rows == columns.rows_max:
        return Status.FULL
    columns.ledger[columns.rows] = record.ledger
    columns.entry[columns.rows] = record.entry
    columns.offset[columns.rows] = record.offset
    columns.length[columns.rows] = record.length
    columns.rows += 1
    return Status.OK


def scan_chunk(path, uint64_t start=0, size_t rows_max=1 << 18, Files files=None):
    """Return up to `rows_max` records of one log from byte `start` (0 = the first record) as a LogChunk of numpy
    arrays.

    If `more` is set, continue at `end`. OSError if reading fails, ValueError if the file is not an entry log.
    """
    if rows_max == 0:
        raise ValueError("rows_max is 0; a chunk holds at least 1 row")
    files = files if files is not None else Files()
    ledger = np.empty(rows_max, np.int64)
    entry = np.empty(rows_max, np.int64)
    offset = np.empty(rows_max, np.uint64)
    length = np.empty(rows_max, np.uint32)
    cdef int64_t[::1] ledgers = ledger
    cdef int64_t[::1] entries = entry
    cdef uint64_t[::1] offsets = offset
    cdef uint32_t[::1] lengths = length
    cdef Columns columns = Columns(&ledgers[0], &entries[0], &offsets[0], &lengths[0], 0, rows_max)
    cdef LogScan result
    cdef Status status
    cdef FileOps* ops = files.ops
    cdef int fd = open_to_read(ops, path)
    with nogil:
        status = scan_log(ops, fd, start, collect, &columns, &result)
        ops.close(fd)
    if status != Status.FULL:
        log_check(status, path)
    n = columns.rows
    return LogChunk(ledger[:n], entry[:n], offset[:n], length[:n], result.end, bool(result.torn), status == Status.FULL)


def scan_entry_log(path, size_t rows_max=1 << 18, Files files=None):
    """Yield the whole log in LogChunks; `torn` of the last one tells how the log ended."""
    start, more = 0, True
    while more:
        chunk = scan_chunk(path, start, rows_max, files)
        start, more = chunk.end, chunk.more
        yield chunk
