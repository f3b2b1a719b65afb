"""The ledgers of a closed log: from its ledgers map if that accounts for every byte, else by scanning the log."""
import os
from collections import namedtuple

import numpy as np

from libc.stdint cimport int64_t
from libc.string cimport memset

from bookie._fast.base.file cimport Files
from bookie._fast.base.open_file cimport open_to_read
from bookie._fast.base.types cimport LENGTH_PREFIX, Status
from bookie._fast.entrylog.ledger_bytes cimport (
    LedgerBytes,
    LedgerMap,
    ledger_map_add,
    ledger_map_free,
    ledger_map_reserve,
    ledger_map_sorted,
)
from bookie._fast.entrylog.scan cimport (
    LOG_HEADER_BYTES,
    LOG_MAGIC,
    LOG_MAP_ENTRY,
    LOG_SPECIAL_LEDGER,
    LogRecord,
    LogScan,
    log_check,
    scan_log,
)

LogLedgers = namedtuple("LogLedgers", "ledgers bytes from_map torn_at")


def read_map(path):
    """Return the ledgers of a log from its ledgers map, or None if it has none that accounts for every byte of its
    records.

    OSError if the file cannot be read.
    """
    with open(path, "rb") as file:
        header = file.read(20)
        size = os.fstat(file.fileno()).st_size
        if len(header) < 20 or int.from_bytes(header[:4], "big") != LOG_MAGIC or int.from_bytes(header[4:8], "big") < 1:
            return None
        offset, count = int.from_bytes(header[8:16], "big"), int.from_bytes(header[16:], "big")
        if not LOG_HEADER_BYTES < offset < size or not 0 < count <= (size - offset) // 16:
            return None
        file.seek(offset)
        data = file.read(size - offset)
    pairs = map_records(data, count)
    if pairs is None:
        return None
    ledgers, sizes = pairs[:, 0].astype(np.int64), pairs[:, 1].astype(np.int64)
    order = np.argsort(ledgers, kind="stable")
    ledgers, sizes = ledgers[order], sizes[order]
    if (np.diff(ledgers) <= 0).any() or ledgers[0] < 0 or (sizes <= 0).any() or (sizes > offset).any():
        return None
    if int(sizes.sum()) != offset - LOG_HEADER_BYTES:
        return None
    return LogLedgers(ledgers, sizes, True, None)


cdef object map_records(bytes data, count):
    """Read `count` (ledger, bytes) pairs from consecutive map records; return None if they are invalid."""
    parts = []
    at = 0
    while count > 0:
        if len(data) - at < 24:
            return None
        length, ledger, entry, n = np.frombuffer(data, ">i4, >i8, >i8, >i4", 1, at)[0]
        fits = 0 < n <= count and length == 20 + 16 * n and len(data) - at - 24 >= 16 * n
        if ledger != LOG_SPECIAL_LEDGER or entry != LOG_MAP_ENTRY or not fits:
            return None
        parts.append(np.frombuffer(data, ">i8", 2 * int(n), at + 24).reshape(-1, 2))
        at += 24 + 16 * int(n)
        count -= int(n)
    return np.concatenate(parts)


cdef Status tally(void* context, const LogRecord* record) noexcept nogil:
    cdef LedgerMap* map = <LedgerMap*> context
    cdef Status status = ledger_map_reserve(map)
    if status == Status.OK:
        ledger_map_add(map, record.ledger, LENGTH_PREFIX + <int64_t> record.length)
    return status


def scan_ledgers(path, Files files=None):
    """Return a log's ledgers by scanning it. OSError if it cannot be read, ValueError if it is not an entry log."""
    cdef LedgerMap map
    cdef LedgerBytes* slots
    cdef LogScan result
    cdef Status status
    cdef size_t i
    cdef int64_t[::1] ids, sums
    files = files if files is not None else Files()
    cdef int fd = open_to_read(files.ops, path)
    memset(&map, 0, sizeof(map))
    try:
        with nogil:
            status = scan_log(files.ops, fd, 0, tally, &map, &result)
            files.ops.close(fd)
        log_check(status, path)
        ledgers = np.empty(map.count, np.int64)
        sizes = np.empty(map.count, np.int64)
        if map.count:
            ids, sums = ledgers, sizes
            slots = ledger_map_sorted(&map)
            for i in range(map.count):
                ids[i] = slots[i].ledger
                sums[i] = <int64_t> slots[i].bytes
    finally:
        ledger_map_free(&map)
    return LogLedgers(ledgers, sizes, False, result.end if result.torn else None)
