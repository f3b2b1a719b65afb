"""Writers of entry logs by ledger: found by a hash, ordered by when they were last appended to. One thread."""
from libc.stdint cimport int64_t, uint32_t, uint64_t

from bookie._fast.entry_log cimport EntryLogWriter

cdef struct OpenLog:
    int64_t ledger               # whose log this is; -1 everybody's
    EntryLogWriter* writer       # owned
    int64_t log_id               # what the last append went to; -1 none
    uint64_t committed           # bytes of it that a commit covers; 0: the log is younger than the last commit
    int64_t appended_ns
    bint touched                 # appended to since the last commit
    OpenLog* next                # in its bucket, or in a list of who took it out
    OpenLog* colder
    OpenLog* warmer

cdef struct OpenLogs:
    OpenLog** buckets
    uint32_t mask
    uint32_t count
    OpenLog* warmest
    OpenLog* coldest

# Room for finding `count_max` logs quickly. False without memory.
cdef bint open_logs_init(OpenLogs* logs, uint32_t count_max) noexcept nogil
# With all logs in it.
cdef void open_logs_free(OpenLogs* logs) noexcept nogil
# A log with this writer, which it owns, in no list; NULL without memory or without a writer.
cdef OpenLog* open_log_new(int64_t ledger, EntryLogWriter* writer) noexcept nogil
cdef void open_log_free(OpenLog* log) noexcept nogil
# The ledger's log; NULL: it has none.
cdef OpenLog* open_logs_find(OpenLogs* logs, int64_t ledger) noexcept nogil
# Put in a log whose ledger has none, as the warmest.
cdef void open_logs_put(OpenLogs* logs, OpenLog* log) noexcept nogil
# It was appended to just now.
cdef void open_logs_warm(OpenLogs* logs, OpenLog* log) noexcept nogil
# Take it out; it is the caller's now.
cdef OpenLog* open_logs_take(OpenLogs* logs, OpenLog* log) noexcept nogil
