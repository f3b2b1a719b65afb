"""The verified scan of journal files (docs/formats/journal.md). Any thread; each scan has its own buffer.

A file with the group mark in its header is read group by group: walk the records up to the padding that closes them,
compare the checksum, then pass them on. Other files are read record by record, by Apache BookKeeper's rules. Whatever
ended the scan, a good group of the same journal further on proves that it is damage in the middle, not the end.
"""
import errno as errors
import os
from collections import namedtuple

import numpy as np

from libc.stdint cimport UINT64_MAX, int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy, memset

from bookie._fast.base.bounds cimport GROUP_BYTES_MAX, RECORD_BYTES_MAX
from bookie._fast.base.crc cimport crc32c
from bookie._fast.base.cursor cimport load_i32, load_i64, load_u32, store_u32
from bookie._fast.base.file cimport FileOps, Files
from bookie._fast.base.open_file cimport open_to_read
from bookie._fast.base.planted cimport PLANT_GROUP_UNCHECKED, bk_planted
from bookie._fast.base.types cimport ENTRY_HEADER_MIN, LENGTH_PREFIX, Status
from bookie._fast.base.window cimport WINDOW_CHUNK, Window, all_zeros, window_at, window_close, window_load, window_open

cdef extern from "<string.h>" nogil:
    void* memmem(const void* hay, size_t hay_size, const void* needle, size_t size) noexcept

cdef enum:
    HEADER_WORDS = 8             # magic and version: the whole header of versions 2 to 4
    BLOCK_BYTES = 512            # groups start at multiples of this; a block of zeros is the end of a journal
    PADDING_PREFIX = 8           # mark and length
    HOLD_BYTES = 0x4000000       # 64 MiB: a larger group is not held while it is verified, but read again
    SEARCH_BYTES = GROUP_BYTES_MAX   # how far behind a clean end to search for a group: as far as one may reach
    SEARCH_CRC_BYTES = 0x40000000    # 1 GiB: the most that a search may checksum, so that hostile bytes cost no hours


cdef struct Scan:
    Window window
    int64_t journal_id
    int version
    bint grouped
    journal_record_fn each
    void* context
    JournalScan* result


cdef struct Item:
    bint padding
    uint64_t size                # including the length word, or mark and length


cdef inline uint32_t with_closing(uint32_t crc, const uint8_t* closing) noexcept nogil:
    """Return a group's checksum, given that of its bytes."""
    return crc32c(crc, closing + 8, GROUP_CLOSE_BYTES - 8)


cdef uint32_t group_crc(const uint8_t* group, size_t size, const uint8_t* closing) noexcept nogil:
    return with_closing(crc32c(0, group, size), closing)


cdef void journal_header(uint8_t* block) noexcept nogil:
    memset(block, 0, JOURNAL_HEADER_BYTES)
    store_u32(block, JOURNAL_MAGIC)
    store_u32(block + 4, JOURNAL_VERSION)
    store_u32(block + GROUP_MARK_AT, GROUP_MAGIC)


cdef Status read_header(Scan* scan, uint64_t* first) noexcept nogil:
    """Read version, grouping, and where the first record lies. END or TORN if the file is too short to hold one."""
    cdef size_t got
    cdef const uint8_t* header
    cdef uint32_t mark
    cdef Status status = window_load(&scan.window, 0, 0, HEADER_WORDS + 4, &got)
    if status != Status.OK:
        return status
    header = window_at(&scan.window, 0)
    if got < HEADER_WORDS:
        return Status.END if all_zeros(header, got) else Status.TORN
    if load_u32(header) != JOURNAL_MAGIC:
        scan.version = 1
        return Status.OK
    scan.version = load_i32(header + 4)
    if scan.version < 2 or scan.version > JOURNAL_VERSION:
        return Status.CORRUPT
    first[0] = HEADER_WORDS
    if scan.version < 5:
        return Status.OK
    first[0] = JOURNAL_HEADER_BYTES
    mark = load_u32(header + GROUP_MARK_AT) if got == HEADER_WORDS + 4 else 0
    scan.grouped = mark == GROUP_MAGIC
    return Status.OK if scan.grouped or mark == 0 else Status.CORRUPT


cdef Status next_item(Scan* scan, uint64_t keep, uint64_t pos, Item* item) noexcept nogil:
    """Read the record or padding at `pos`; a record is loaded whole. END, TORN (the file ends inside it) or CORRUPT."""
    cdef size_t got
    cdef int32_t length
    cdef Status status = window_load(&scan.window, keep, pos, PADDING_PREFIX, &got)
    if status != Status.OK:
        return status
    if got < LENGTH_PREFIX:
        return Status.END if all_zeros(window_at(&scan.window, pos), got) else Status.TORN
    length = load_i32(window_at(&scan.window, pos))
    if length == 0:
        return Status.END
    item.padding = length == PADDING_MARK and scan.version >= 5
    if item.padding:
        if got < PADDING_PREFIX:
            return Status.TORN
        length = load_i32(window_at(&scan.window, pos) + LENGTH_PREFIX)
        item.size = PADDING_PREFIX + <uint64_t> length
        return Status.OK if 0 <= length <= RECORD_BYTES_MAX else Status.CORRUPT
    if length < ENTRY_HEADER_MIN or length > RECORD_BYTES_MAX:
        return Status.CORRUPT
    item.size = LENGTH_PREFIX + <uint64_t> length
    status = window_load(&scan.window, keep, pos, item.size, &got)
    if status != Status.OK:
        return status
    return Status.OK if got == item.size else Status.TORN


cdef Status holds(Scan* scan, uint64_t keep, uint64_t end) noexcept nogil:
    """Return OK if the file reaches up to `end` (> 0), else TORN."""
    cdef size_t got
    cdef Status status = window_load(&scan.window, keep, end - 1, 1, &got)
    if status != Status.OK:
        return status
    return Status.OK if got == 1 else Status.TORN


cdef Status hand_on(Scan* scan, uint64_t pos, uint64_t size) noexcept nogil:
    cdef JournalRecord record
    cdef Status status
    record.position = pos
    record.length = <uint32_t> (size - LENGTH_PREFIX)
    record.data = window_at(&scan.window, pos) + LENGTH_PREFIX
    record.ledger = load_i64(record.data)
    record.kind = load_i64(record.data + 8)
    status = scan.each(scan.context, &record)
    if status == Status.OK:
        scan.result.records += 1
    return status


cdef Status scan_records(Scan* scan, uint64_t pos, Status* refused) noexcept nogil:
    """Scan a file without closed groups: each record stands alone."""
    cdef Item item
    cdef Status status
    while True:
        scan.result.end = pos
        status = next_item(scan, pos, pos, &item)
        if status == Status.OK and item.padding:
            status = holds(scan, pos + item.size - 1, pos + item.size)
        elif status == Status.OK:
            refused[0] = hand_on(scan, pos, item.size)
            status = refused[0]
        if status != Status.OK:
            return status
        pos += item.size


cdef Status check_closing(Scan* scan, uint64_t start, uint64_t keep, uint32_t crc, uint64_t padding,
                          uint64_t end) noexcept nogil:
    """Check the closing of a group. OK: it is whole, and this journal wrote it here. END: it is whole, but another
    journal wrote it, or wrote it elsewhere. TORN: it is not whole.

    `crc` covers the group's bytes before `keep`. A write may have ended between the closing and the end of the padding,
    and the file with it. Nothing is missing then, so the group is whole.
    """
    cdef size_t got
    cdef size_t size = padding + PADDING_PREFIX - start
    cdef const uint8_t* closing
    cdef Status status
    if end - padding < GROUP_PAD_MIN:
        return Status.TORN
    status = window_load(&scan.window, keep, padding, GROUP_PAD_MIN, &got)
    if status != Status.OK:
        return status
    if got < GROUP_PAD_MIN:
        return Status.TORN
    closing = window_at(&scan.window, padding + PADDING_PREFIX)
    if load_u32(closing) != GROUP_MAGIC or load_u32(closing + 8) != size or load_u32(closing + 12) != start:
        return Status.TORN
    crc = crc32c(crc, window_at(&scan.window, keep), padding + PADDING_PREFIX - keep)
    if load_u32(closing + 4) != with_closing(crc, closing) and not bk_planted(PLANT_GROUP_UNCHECKED):
        return Status.TORN
    return Status.OK if load_i64(closing + 16) == scan.journal_id else Status.END


cdef Status read_group(Scan* scan, uint64_t start, uint64_t* padding, uint64_t* end) noexcept nogil:
    """Load and verify the group at `start`. END at a blank block or a stale group, TORN if it is not whole."""
    cdef Item item
    cdef size_t got
    cdef uint64_t pos = start
    cdef uint64_t keep = start
    cdef uint32_t crc = 0
    cdef Status status = window_load(&scan.window, start, start, BLOCK_BYTES, &got)
    if status == Status.OK and all_zeros(window_at(&scan.window, start), got):
        return Status.END
    item.padding = False
    while status == Status.OK and not item.padding:
        padding[0] = pos
        if pos - keep > HOLD_BYTES:
            crc = crc32c(crc, window_at(&scan.window, keep), pos - keep)
            keep = pos
        status = next_item(scan, keep, pos, &item)
        pos += item.size
    end[0] = pos
    if status == Status.OK:
        status = check_closing(scan, start, keep, crc, padding[0], pos)
        return Status.TORN if status == Status.FULL else status
    if status == Status.END or status == Status.CORRUPT or status == Status.FULL:
        return Status.TORN
    return status


cdef Status scan_groups(Scan* scan, uint64_t start, Status* refused) noexcept nogil:
    """Scan a file of closed groups: nothing of a group is passed on before its checksum matched."""
    cdef uint64_t padding, end, pos
    cdef Item item
    cdef Status status
    while True:
        scan.result.end = start
        status = read_group(scan, start, &padding, &end)
        if status != Status.OK:
            return status
        pos = start
        while pos < padding:
            # A large group is read again here, and must have the same records as a moment ago.
            status = next_item(scan, pos, pos, &item)
            if status != Status.OK or item.padding or item.size > padding - pos:
                return Status.IO_ERROR
            refused[0] = hand_on(scan, pos, item.size)
            if refused[0] != Status.OK:
                return refused[0]
            pos += item.size
        scan.result.groups += 1
        start = end


cdef Status verify_at(Scan* scan, uint64_t pos, uint64_t after, uint64_t* budget) noexcept nogil:
    """Return OK if the fields at `pos` close a good group of this journal that starts after `after`; else NO_ENTRY."""
    cdef size_t got
    cdef uint8_t closing[GROUP_CLOSE_BYTES]
    cdef uint64_t start, size
    cdef uint32_t crc = 0
    cdef Status status = window_load(&scan.window, pos, pos, GROUP_CLOSE_BYTES, &got)
    if status != Status.OK:
        return status
    if got < GROUP_CLOSE_BYTES:
        return Status.NO_ENTRY
    memcpy(closing, window_at(&scan.window, pos), GROUP_CLOSE_BYTES)
    size = load_u32(closing + 8)
    start = load_u32(closing + 12)
    if load_i64(closing + 16) != scan.journal_id or start <= after or start % BLOCK_BYTES != 0 or start + size != pos:
        return Status.NO_ENTRY
    if size > budget[0]:
        return Status.OK             # too much to verify: rather report damage than silently end early
    budget[0] -= size
    while start < pos:
        size = min(pos - start, <uint64_t> WINDOW_CHUNK)
        status = window_load(&scan.window, start, start, size, &got)
        if status != Status.OK:
            return status
        if got < size:
            return Status.NO_ENTRY
        crc = crc32c(crc, window_at(&scan.window, start), size)
        start += size
    return Status.OK if with_closing(crc, closing) == load_u32(closing + 4) else Status.NO_ENTRY


cdef Status find_group(Scan* scan, uint64_t after, uint64_t limit) noexcept nogil:
    """Return OK if a good group of this journal starts after `after` and closes below `limit`, else NO_ENTRY."""
    cdef uint8_t magic[4]
    cdef uint64_t budget = SEARCH_CRC_BYTES
    cdef uint64_t pos = after
    cdef const uint8_t* hit
    cdef size_t held
    cdef Status status
    store_u32(magic, GROUP_MAGIC)
    while pos < limit:
        status = window_load(&scan.window, pos, pos, GROUP_CLOSE_BYTES, &held)
        if status != Status.OK:
            return status
        if held < GROUP_CLOSE_BYTES:
            break
        held = scan.window.size - (pos - scan.window.base)
        hit = <const uint8_t*> memmem(window_at(&scan.window, pos), held, magic, sizeof(magic))
        if hit == NULL:
            pos += held - sizeof(magic) + 1
            continue
        pos += hit - window_at(&scan.window, pos)
        status = verify_at(scan, pos, after, &budget)
        if status != Status.NO_ENTRY:
            return status
        pos += 1
    return Status.NO_ENTRY


cdef Status judge(Scan* scan, Status ended) noexcept nogil:
    """Decide whether the file is torn or damaged, given how the walk ended (END, TORN, CORRUPT)."""
    cdef uint64_t at = scan.result.end
    cdef Status status = find_group(scan, at, at + SEARCH_BYTES if ended == Status.END else UINT64_MAX)
    if status != Status.OK and status != Status.NO_ENTRY:
        return status
    scan.result.damaged = status == Status.OK or ended == Status.CORRUPT
    scan.result.torn = ended == Status.TORN and not scan.result.damaged
    if scan.result.damaged:
        scan.result.damaged_at = at
    return Status.OK


cdef Status scan_file(Scan* scan, uint64_t start) noexcept nogil:
    cdef uint64_t first = 0
    cdef Status refused = Status.OK
    cdef Status status = read_header(scan, &first)
    scan.result.version = scan.version
    if status == Status.CORRUPT:
        return status
    if status == Status.OK and start > first:
        first = start
        scan.result.end = start
        status = holds(scan, start - 1, start)
    if status == Status.OK:
        status = scan_groups(scan, first, &refused) if scan.grouped else scan_records(scan, first, &refused)
    if refused != Status.OK:
        return refused
    if status == Status.END or status == Status.TORN or status == Status.CORRUPT:
        return judge(scan, status)
    return status


cdef Status journal_scan(FileOps* ops, int fd, int64_t journal_id, uint64_t start, journal_record_fn each,
                         void* context, JournalScan* result) noexcept nogil:
    cdef Scan scan
    cdef Status status
    memset(result, 0, sizeof(JournalScan))
    memset(&scan, 0, sizeof(Scan))
    scan.journal_id = journal_id
    scan.each = each
    scan.context = context
    scan.result = result
    status = window_open(&scan.window, ops, fd, HOLD_BYTES + RECORD_BYTES_MAX + 2 * WINDOW_CHUNK)
    if status == Status.OK:
        status = scan_file(&scan, start)
        window_close(&scan.window)
    return status


# --- for Python ------------------------------------------------------------------------------------------------------

JournalRows = namedtuple(
    "JournalRows", "ledger kind position length version end records groups torn damaged damaged_at"
)

cdef struct Row:
    int64_t ledger
    int64_t kind
    uint64_t position
    uint64_t length

cdef struct Rows:
    Row* rows
    size_t count
    size_t capacity


cdef Status collect(void* context, const JournalRecord* record) noexcept nogil:
    cdef Rows* rows = <Rows*> context
    cdef size_t capacity
    cdef Row* grown
    if rows.count == rows.capacity:
        capacity = rows.capacity * 2 if rows.capacity > 0 else 1024
        grown = <Row*> realloc(rows.rows, capacity * sizeof(Row))
        if grown == NULL:
            return Status.NO_MEMORY
        rows.rows = grown
        rows.capacity = capacity
    rows.rows[rows.count] = Row(record.ledger, record.kind, record.position, record.length)
    rows.count += 1
    return Status.OK


def scan_journal(path, int64_t journal_id, uint64_t start=0, Files files=None):
    """Scan one journal file from byte `start` (0 = the first record); return a JournalRows of numpy columns and the
    result.

    `damaged_at` is None unless `damaged`. OSError if reading fails, ValueError if the file is not a journal.
    """
    files = files if files is not None else Files()
    cdef Rows rows = Rows(NULL, 0, 0)
    cdef JournalScan result
    cdef Status status
    cdef FileOps* ops = files.ops
    cdef int fd = open_to_read(ops, path)
    with nogil:
        status = journal_scan(ops, fd, journal_id, start, collect, &rows, &result)
        ops.close(fd)
    try:
        table = np.empty((rows.count, 4), np.int64)
        if rows.count > 0:
            memcpy(<void*> <size_t> table.ctypes.data, rows.rows, rows.count * sizeof(Row))
    finally:
        free(rows.rows)
    if status == Status.CORRUPT:
        raise ValueError(f"{path}: not a journal of version 1 to {JOURNAL_VERSION}; restore the file or move it away")
    if status == Status.NO_MEMORY:
        raise MemoryError(f"{path}: no memory to scan the journal")
    if status != Status.OK:
        raise OSError(errors.EIO, os.strerror(errors.EIO), str(path))
    ledger, kind, position, length = np.ascontiguousarray(table.T)
    return JournalRows(ledger, kind, position, length, result.version, result.end, result.records, result.groups,
                       bool(result.torn), bool(result.damaged), result.damaged_at if result.damaged else None)
