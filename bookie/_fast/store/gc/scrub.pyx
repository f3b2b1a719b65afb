"""Verdicts on scanned records, live bytes by log, and the records that the index has in one log."""
import errno
from collections import namedtuple

import numpy as np

cimport cython
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memset

from bookie._fast.base.types cimport CORRUPT, END, LENGTH_PREFIX, NO_MEMORY, OK
from bookie._fast.entrylog.ids cimport log_ids_is_open
from bookie._fast.entrylog.ledger_bytes cimport (
    LedgerBytes,
    LedgerMap,
    ledger_map_add,
    ledger_map_free,
    ledger_map_reserve,
    ledger_map_sorted,
)
from bookie._fast.entrylog.scan cimport LogRecord
from bookie._fast.index.codec cimport LedgerRecord, StoredRun, run_bytes, run_length
from bookie._fast.index.location cimport (
    index_check_doubts,
    index_each_fence,
    index_each_ledger,
    index_reader,
    index_reader_free,
    index_walk,
)
from bookie._fast.store.gc.compaction cimport WALK_RUNS
from bookie._fast.store.gc.liveness cimport Verdict, judge, liveness_clear, liveness_free, liveness_init

__all__ = ["DELETED", "DISAGREES", "ELSEWHERE", "LIVE", "ORPHAN", "UNKNOWN", "Pointed", "Scrubber"]

# The verdicts of `liveness`, and one more: the index could not be read.
LIVE, ELSEWHERE, DELETED, ORPHAN, DISAGREES, UNKNOWN = range(6)
Pointed = namedtuple("Pointed", "ledger entry offset length more")

cdef enum:
    POINTED_MOST = 0x100000      # rows of one result, 28 bytes each
    NOT_ASKED = 5                # UNKNOWN

cdef struct Wanted:
    uint32_t log_id
    uint64_t first               # records that begin in [first, end)
    uint64_t end
    int64_t* ledger
    int64_t* entry
    uint64_t* offset
    uint32_t* length
    size_t rows
    size_t most
    bint more                    # there were more rows than `most`


cdef Status sum_up(void* context, const StoredRun* run) noexcept nogil:
    cdef LedgerMap* logs = <LedgerMap*> context
    cdef uint32_t present
    cdef Status status = ledger_map_reserve(logs)
    if status == OK:
        ledger_map_add(logs, run.log_id, run_bytes(run, 0, run.count, &present))
    return status


cdef Status see_ledger(void* context, const LedgerRecord* record) noexcept nogil:
    return OK


cdef Status see_fence(void* context, int64_t ledger, int64_t deleted_ms) noexcept nogil:
    return OK


cdef Status put_rows(void* context, const StoredRun* run) noexcept nogil:
    cdef Wanted* wanted = <Wanted*> context
    cdef uint64_t offset = run.offset
    cdef uint32_t slot, length
    if run.log_id != wanted.log_id or offset >= wanted.end:
        return OK
    for slot in range(run.count):
        length = run_length(run, slot)
        if length == 0:
            continue
        if wanted.first <= offset < wanted.end:
            if wanted.rows == wanted.most:
                wanted.more = True
                return OK
            wanted.ledger[wanted.rows] = run.ledger
            wanted.entry[wanted.rows] = run.first + slot
            wanted.offset[wanted.rows] = offset
            wanted.length[wanted.rows] = length
            wanted.rows += 1
        offset += LENGTH_PREFIX + <uint64_t> length
    return OK


@cython.no_gc_clear
cdef class Scrubber:
    """Compares the entry logs of one ledger directory with its index. OSError if that cannot be read; MemoryError."""

    def __cinit__(self, DirectoryStore handle):
        cdef Status status
        self.handle = handle
        self.directory = handle.directory
        self.reader = index_reader(handle.store.index)
        if self.reader == NULL:
            raise OSError(errno.EIO, "a scrub needs a reader of the location index, and none is left", handle.directory)
        status = liveness_init(&self.liveness, handle.store, self.reader)
        self.check(status, "beginning a scrub")

    def __dealloc__(self):
        liveness_free(&self.liveness)

    def close(self):
        """Close it while no other call is in progress, before the DirectoryStore. A second call does nothing."""
        liveness_free(&self.liveness)
        if self.reader != NULL:
            index_reader_free(self.reader)
            self.reader = NULL

    cdef int need(self) except -1:
        if self.reader == NULL:
            raise ValueError(f"{self.directory}: the scrub is closed")
        return 0

    cdef int check(self, Status status, str doing) except -1:
        if status == OK:
            return 0
        if status == NO_MEMORY:
            raise MemoryError(f"{self.directory}: no memory for {doing}")
        why = "a page or value of it is damaged" if status == CORRUPT else f"status {<int> status}"
        raise OSError(errno.EIO, f"{doing}: the location index cannot be read ({why})", self.directory)

    def is_open(self, uint32_t log_id):
        """Return whether the log may still grow, or hold records to which no commit points yet."""
        return bool(log_ids_is_open(self.handle.store.ids, log_id))

    def judge(self, uint32_t log_id, ledgers, entries, offsets, lengths):
        """Return a verdict for each of these records of a log, by what the index says now."""
        cdef const int64_t[::1] ledger = np.ascontiguousarray(ledgers, np.int64)
        cdef const int64_t[::1] entry = np.ascontiguousarray(entries, np.int64)
        cdef const uint64_t[::1] offset = np.ascontiguousarray(offsets, np.uint64)
        cdef const uint32_t[::1] length = np.ascontiguousarray(lengths, np.uint32)
        cdef size_t count = ledger.shape[0], i
        cdef LogRecord record
        cdef Verdict verdict
        cdef Status status
        if not entry.shape[0] == offset.shape[0] == length.shape[0] == ledger.shape[0]:
            raise ValueError("ledgers, entries, offsets and lengths must have the same length")
        self.need()
        found = np.empty(count, np.uint8)
        cdef uint8_t[::1] out = found
        memset(&record, 0, sizeof(record))
        with nogil:
            liveness_clear(&self.liveness)
            for i in range(count):
                record.ledger, record.entry = ledger[i], entry[i]
                record.offset, record.length = offset[i], length[i]
                status = judge(&self.liveness, log_id, &record, &verdict)
                out[i] = <uint8_t> verdict if status == OK else <uint8_t> NOT_ASKED
        return found

    def check_tables(self):
        """Read what a start would read: ledgers, kept fences, doubts. Damage is noted for the repair of the index."""
        cdef Status status
        self.need()
        with nogil:
            status = index_each_ledger(self.reader, see_ledger, NULL, False)
            if status == OK:
                status = index_each_fence(self.reader, see_fence, NULL)
            if status == OK:
                status = index_check_doubts(self.reader)
        self.check(status, "reading ledgers, kept fences and doubts")

    def live_bytes(self):
        """Return the bytes of records, length words included, that the index points at, by log id. Takes one walk."""
        cdef LedgerMap logs
        cdef LedgerBytes* slots
        cdef int64_t ledger = 0, entry = 0
        cdef Status status = OK
        cdef size_t i
        self.need()
        memset(&logs, 0, sizeof(logs))
        try:
            with nogil:
                while status == OK:
                    status = index_walk(self.reader, &ledger, &entry, WALK_RUNS, sum_up, &logs)
            self.check(OK if status == END else status, "adding up what the index points at")
            if logs.count == 0:
                return {}
            slots = ledger_map_sorted(&logs)
            return {slots[i].ledger: slots[i].bytes for i in range(logs.count)}
        finally:
            ledger_map_free(&logs)

    def pointed(self, uint32_t log_id, uint64_t first=0, uint64_t end=0xFFFFFFFFFFFFFFFF, size_t most=POINTED_MOST):
        """Return up to `most` records that the index has in bytes [first, end) of a log, by offset, and whether there
        are more. Takes one walk over the index.
        """
        cdef Wanted wanted
        cdef int64_t ledger = 0, entry = 0
        cdef Status status = OK
        cdef int64_t[::1] ledger_at, entry_at
        cdef uint64_t[::1] offset_at
        cdef uint32_t[::1] length_at
        if not 0 < most <= POINTED_MOST:
            raise ValueError(f"most is {most}; it must be 1 to {POINTED_MOST}")
        self.need()
        kinds = np.int64, np.int64, np.uint64, np.uint32
        columns = [np.empty(most, kind) for kind in kinds]
        ledger_at, entry_at, offset_at, length_at = columns
        wanted = Wanted(log_id, first, end, &ledger_at[0], &entry_at[0], &offset_at[0], &length_at[0], 0, most, False)
        with nogil:
            while status == OK:
                status = index_walk(self.reader, &ledger, &entry, WALK_RUNS, put_rows, &wanted)
        self.check(OK if status == END else status, f"looking for records of log {log_id:x} in the index")
        order = np.argsort(columns[2][:wanted.rows], kind="stable")
        return Pointed(*(column[:wanted.rows][order] for column in columns), bool(wanted.more))
