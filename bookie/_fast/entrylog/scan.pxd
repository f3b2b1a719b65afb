"""The entry log format and its scan (docs/formats/entry-log.md). Any thread; nothing is cached."""
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from bookie._fast.base.file cimport FileOps
from bookie._fast.base.pace cimport Pace
from bookie._fast.base.types cimport Status
from bookie._fast.base.window cimport Window

cdef enum:
    LOG_MAGIC = 0x424B4C4F               # BKLO
    LOG_VERSION = 1
    LOG_HEADER_BYTES = 1024
    LOG_ID_MAX = 0x7FFFFFFF
    LOG_SPECIAL_LEDGER = -1              # instead of a ledger id: the record is not an entry
    LOG_MAP_ENTRY = -2                   # instead of an entry id: the record is part of the ledgers map

cdef struct LogRecord:
    int64_t ledger
    int64_t entry
    uint64_t offset              # of the length word
    uint32_t length              # entry bytes
    const uint8_t* data          # the entry; valid during the callback only

cdef struct LogScan:
    uint64_t end                 # where the scan stopped
    uint64_t records
    uint64_t bytes               # of entries, length words included
    bint torn                    # it stopped inside a record, or at bytes that are not a record

cdef struct LogCursor:
    # A scan that its owner drives. One thread. `window` grows with the largest record, to RECORD_BYTES_MAX at most.
    Window window
    bint direct                  # the direct-I/O layout
    uint64_t pos                 # of the next record

ctypedef Status (*log_record_fn)(void* context, const LogRecord* record) noexcept nogil

# Call `each` for every entry from `start` (0 = after the header) on, in the default or the direct-I/O layout; special
# records are skipped. Return OK with `result` filled in, IO_ERROR, CORRUPT (not an entry log, or a newer version),
# NO_MEMORY, or the status with which `each` refused the record at `end`.
cdef Status scan_log(FileOps* ops, int fd, uint64_t start, log_record_fn each, void* context,
                     LogScan* result) noexcept nogil

# Begin at `start` (0 = after the header). Return OK; END or TORN for a file without records; IO_ERROR, CORRUPT or
# NO_MEMORY. Call log_close whatever the result; the caller keeps `fd`.
cdef Status log_open(LogCursor* cursor, FileOps* ops, int fd, uint64_t start) noexcept nogil
# The same with a pace (see window_pace); this and log_next return CLOSED once the pace is stopped.
cdef Status log_open_paced(LogCursor* cursor, FileOps* ops, int fd, uint64_t start, Pace* pace) noexcept nogil
# Read the next record, including special ones (ledger LOG_SPECIAL_LEDGER). Return OK, END, TORN (at cursor.pos), or an
# error. The record's data is valid until a log_next for which log_held was False.
cdef Status log_next(LogCursor* cursor, LogRecord* record) noexcept nogil
# Return whether the next log_next leaves the memory of earlier records in place.
cdef bint log_held(const LogCursor* cursor) noexcept nogil
cdef void log_close(LogCursor* cursor) noexcept nogil

# Raise the exception for a status of the entry log modules, with `path` in its text; do nothing for OK.
cdef object log_check(Status status, path)
