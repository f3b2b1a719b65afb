"""Scans an entry log into columns: reads, checks and copies in one pass, without the GIL."""
from libc.stdint cimport int32_t, uint8_t, uint64_t

from bookie._fast.base.bounds cimport RECORD_BYTES_MAX
from bookie._fast.base.cursor cimport load_i32
from bookie._fast.base.file cimport Files
from bookie._fast.base.pace cimport Pace, Pacer
from bookie._fast.base.types cimport LENGTH_PREFIX, Status
from bookie._fast.base.window cimport Window, window_at, window_load
from bookie._fast.entrylog.scan cimport (
    LOG_HEADER_BYTES,
    LOG_MAP_ENTRY,
    LOG_SPECIAL_LEDGER,
    LogRecord,
    log_check,
    log_close,
    log_next,
    log_open_paced,
)
from bookie._fast.wire.digest cimport ENTRY_FIXED_BYTES
from bookie._fast.wire.record_rows cimport (
    ROW_ENTRY,
    ROW_GARBAGE,
    ROW_LEDGERS_MAP,
    RowSheet,
    Sheet,
    digest_found,
    header_holds,
    sheet_put,
)

cdef enum:
    SEARCH_BYTES = 0x40000000    # 1 GiB: the most that one search may checksum, so that hostile bytes cost no hours


cdef Status put_records(LogCursor* cursor, Sheet* sheet, uint64_t* suspect) noexcept nogil:
    """Write rows until the sheet is full (FULL) or the records end (END, TORN), or until an error."""
    cdef LogRecord record
    cdef Status status
    cdef int kind
    cdef size_t rows
    while True:
        status = log_next(cursor, &record)
        if status != Status.OK:
            return status
        kind = ROW_ENTRY
        if record.ledger == LOG_SPECIAL_LEDGER:
            kind = ROW_LEDGERS_MAP if record.entry == LOG_MAP_ENTRY else ROW_GARBAGE
        rows = sheet.rows
        status = sheet_put(sheet, record.ledger, record.entry, record.offset + LENGTH_PREFIX, record.data,
                           record.length, kind)
        if status != Status.OK:
            cursor.pos = record.offset
            return status
        if sheet.rows == rows or sheet.ok[rows]:
            suspect[0] = 0
        elif suspect[0] == 0:
            suspect[0] = record.offset


cdef Status record_at(Window* window, uint64_t pos, size_t* size, const uint8_t** data) noexcept nogil:
    """Return OK if a whole record that looks like an entry is at `pos`, else NO_ENTRY; END after the file's end."""
    cdef size_t got
    cdef int32_t length
    cdef Status status = window_load(window, pos, pos, LENGTH_PREFIX + ENTRY_FIXED_BYTES, &got)
    if status != Status.OK:
        return status
    if got < LENGTH_PREFIX + ENTRY_FIXED_BYTES:
        return Status.END
    length = load_i32(window_at(window, pos))
    if length < ENTRY_FIXED_BYTES or length > RECORD_BYTES_MAX:
        return Status.NO_ENTRY
    if not header_holds(window_at(window, pos) + LENGTH_PREFIX, length):
        return Status.NO_ENTRY
    status = window_load(window, pos, pos, LENGTH_PREFIX + <size_t> length, &got)
    if status != Status.OK:
        return status
    if got < LENGTH_PREFIX + <size_t> length:
        return Status.NO_ENTRY
    data[0] = window_at(window, pos) + LENGTH_PREFIX
    size[0] = length
    return Status.OK


cdef Status search(LogCursor* cursor, const Sheet* sheet, uint64_t pos) noexcept nogil:
    """Move to the first entry from `pos` on with a valid digest. END if there is none, or SEARCH_BYTES were checked."""
    cdef uint64_t budget = SEARCH_BYTES
    cdef size_t size
    cdef const uint8_t* data
    cdef Status status
    while True:
        status = record_at(&cursor.window, pos, &size, &data)
        if status == Status.OK:
            if size > budget:
                return Status.END
            budget -= size
            if digest_found(sheet, data, size) != NULL:
                cursor.pos = pos
                return Status.OK
        elif status != Status.NO_ENTRY:
            return status
        pos += 1


cdef class LogRows(RowFile):
    """The rows of one entry log from byte `start` on (0 for its first record). Close it.

    With a `pace`, the file is read at that rate and without the page cache, and the rows end when the pace is stopped.
    OSError if the file cannot be read, ValueError if it is not an entry log.
    """

    def __cinit__(self, path, RowSheet sheet not None, uint64_t start=0, Files files=None, Pacer pace=None):
        cdef Status status
        self.open(path, sheet, files)
        self.pace = pace
        cdef Pace* limit = &pace.pace if pace is not None else NULL
        with nogil:
            status = log_open_paced(&self.cursor, self.files.ops, self.fd, start, limit)
        if status != Status.END and status != Status.TORN and status != Status.CLOSED:
            log_check(status, self.path)
        self.status = status

    def __dealloc__(self):
        log_close(&self.cursor)

    @property
    def position(self):
        """Where the next record begins, or where a record was expected."""
        return self.cursor.pos

    @property
    def stopped(self):
        """Whether the rows ended because the pace was stopped."""
        return self.status == Status.CLOSED

    @property
    def torn(self):
        """Whether the rows ended at bytes that are not a record."""
        return self.status == Status.TORN

    @property
    def suspected(self):
        """Whether the rows ended after entries with invalid digests: a wrong length may have misled the scan."""
        return self.suspect != 0 and self.status != Status.OK

    cdef Status fill(self) except *:
        cdef Status status
        with nogil:
            status = put_records(&self.cursor, &self.sheet.sheet, &self.suspect)
        if status != Status.FULL and status != Status.END and status != Status.TORN and status != Status.CLOSED:
            log_check(status, self.path)
        return status

    def skip(self):
        """Continue after torn or suspected bytes, at the next entry with a valid digest; return False if there is
        none.

        An entry before them whose own digest is invalid may have a wrong length, in which case the bytes after it were
        not a record: the search begins inside the first such entry.
        """
        cdef uint64_t start = max(self.cursor.pos, <uint64_t> LOG_HEADER_BYTES)
        cdef Status status
        if not self.torn and not self.suspected:
            raise ValueError(f"{self.path}: the scan is at byte {self.cursor.pos}, where there is no damage to skip")
        if self.suspect:
            start = self.suspect
        self.suspect = 0
        with nogil:
            status = search(&self.cursor, &self.sheet.sheet, start + 1)
        if status != Status.END:
            log_check(status, self.path)
            self.status = Status.OK
        else:
            self.status = Status.END
        return status == Status.OK
