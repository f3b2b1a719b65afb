"""The entry log format, and its scan (docs/formats/entry-log.md). Any thread; nothing is cached."""
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
    LOG_SPECIAL_LEDGER = -1              # in place of a ledger id: the record is no entry
    LOG_MAP_ENTRY = -2                   # in place of the entry id: it is a part of the ledgers map

cdef struct LogRecord:
    int64_t ledger
    int64_t entry
    uint64_t offset              # of the length word
    uint32_t length              # entry bytes
    const uint8_t* data          # the entry; valid during the callback only

cdef struct LogScan:
    uint64_t end                 # where the scan stopped
    uint64_t records
    uint64_t bytes               # of entries with their prefixes
    bint torn                    # stopped inside a record, or at bytes that are no record

cdef struct LogCursor:
    # A scan that its owner drives. One thread; `window` grows with the largest record, RECORD_BYTES_MAX at most.
    Window window
    bint direct                  # the direct-I/O layout
    uint64_t pos                 # of the next record

ctypedef Status (*log_record_fn)(void* context, const LogRecord* record) noexcept nogil

# Every record from `start` (0 = after the header), default and direct-I/O layouts, special records skipped. OK with
# `result` filled, IO_ERROR, CORRUPT (no entry log, or a newer one), NO_MEMORY, or what `each` answered (`end` = the
# record refused).
cdef Status elog_scan(FileOps* ops, int fd, uint64_t start, log_record_fn each, void* context,
                      LogScan* result) noexcept nogil

# Begin at `start` (0 = after the header). OK; END or TORN: a file without records; IO_ERROR, CORRUPT, NO_MEMORY.
# Whatever it answers, log_close frees the window; `fd` stays the caller's.
cdef Status log_open(LogCursor* cursor, FileOps* ops, int fd, uint64_t start) noexcept nogil
# The same at a pace, see window_pace; CLOSED, here and from log_next, once that is stopped.
cdef Status log_open_paced(LogCursor* cursor, FileOps* ops, int fd, uint64_t start, Pace* pace) noexcept nogil
# The next record, special ones (ledger LOG_SPECIAL_LEDGER) too. OK, END, TORN (at cursor.pos), or an error. Its data is
# valid until a call that log_held did not promise.
cdef Status log_next(LogCursor* cursor, LogRecord* record) noexcept nogil
# Whether the next log_next moves nothing in memory, so that records handed out before stay where they are.
cdef bint log_held(const LogCursor* cursor) noexcept nogil
cdef void log_close(LogCursor* cursor) noexcept nogil

# The door from a status of the entry log modules to an exception that names `path`.
cdef object log_check(Status status, path)
