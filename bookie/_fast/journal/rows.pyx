"""The verified scan of a journal file into columns.

A batch may end within a group: the next one reads and verifies that group again, and skips the records returned
before.
"""
import errno
import os

from libc.stdint cimport int64_t, uint64_t

from bookie._fast.base.file cimport Files
from bookie._fast.base.types cimport Status
from bookie._fast.journal.reader cimport (
    JOURNAL_VERSION,
    META_FENCE,
    META_FORCE,
    META_KEY,
    META_LAC,
    JournalRecord,
    JournalScan,
    journal_scan,
)
from bookie._fast.wire.record_rows cimport (
    ROW_ENTRY,
    ROW_FENCE,
    ROW_FORCE,
    ROW_GARBAGE,
    ROW_LAC,
    ROW_MASTER_KEY,
    RowSheet,
    Sheet,
    sheet_put,
)

cdef struct Filling:
    Sheet* sheet
    uint64_t next


cdef int kind_of(int64_t kind) noexcept nogil:
    if kind >= 0:
        return ROW_ENTRY
    if kind == META_KEY:
        return ROW_MASTER_KEY
    if kind == META_FENCE:
        return ROW_FENCE
    if kind == META_FORCE:
        return ROW_FORCE
    return ROW_LAC if kind == META_LAC else ROW_GARBAGE


cdef Status put(void* context, const JournalRecord* record) noexcept nogil:
    cdef Filling* filling = <Filling*> context
    cdef Status status
    if record.position < filling.next:
        return Status.OK
    status = sheet_put(filling.sheet, record.ledger, record.kind, record.position, record.data, record.length,
                       kind_of(record.kind))
    if status == Status.OK:
        filling.next = record.position + 1
    return status


cdef class JournalRows(RowFile):
    """The rows of one journal file. Close it. OSError if it cannot be read, ValueError if it is not a journal.

    After the last row, `torn` and `damaged_at` tell how the file ended.
    """

    def __cinit__(self, path, int64_t journal_id, RowSheet sheet not None, Files files=None):
        self.open(path, sheet, files)
        self.journal_id = journal_id

    @property
    def position(self):
        """Where the next record begins, or where a record was expected."""
        return self.start

    cdef Status fill(self) except *:
        cdef Filling filling
        cdef JournalScan result
        cdef Status status
        filling.sheet = &self.sheet.sheet
        filling.next = self.next
        with nogil:
            status = journal_scan(self.files.ops, self.fd, self.journal_id, self.start, put, &filling, &result)
        self.start = result.end
        self.next = filling.next
        if status != Status.FULL:
            self.check(status)
        self.version = result.version
        if status == Status.FULL:
            return status
        self.torn = result.torn
        self.damaged_at = result.damaged_at if result.damaged else None
        return Status.END

    cdef int check(self, Status status) except -1:
        if status == Status.OK:
            return 0
        if status == Status.CORRUPT:
            raise ValueError(
                f"{self.path}: not a journal of version 1 to {JOURNAL_VERSION}; restore the file or move it away")
        if status == Status.NO_MEMORY:
            raise MemoryError(f"{self.path}: no memory to scan the journal")
        raise OSError(errno.EIO, os.strerror(errno.EIO), self.path)
