"""A hash with chains and a doubly linked list through the same logs."""
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memset

from bookie._fast.entry_log cimport EntryLogWriter, elog_writer_free

cdef enum:
    BUCKETS_LEAST = 16


cdef bint open_logs_init(OpenLogs* logs, uint32_t count_max) noexcept nogil:
    cdef uint32_t size = BUCKETS_LEAST
    memset(logs, 0, sizeof(OpenLogs))
    while size < count_max and size < <uint32_t> 1 << 24:
        size *= 2
    logs.mask = size - 1
    logs.buckets = <OpenLog**> calloc(size, sizeof(OpenLog*))
    return logs.buckets != NULL


cdef void open_logs_free(OpenLogs* logs) noexcept nogil:
    while logs.warmest != NULL:
        open_log_free(open_logs_take(logs, logs.warmest))
    free(logs.buckets)
    logs.buckets = NULL


cdef OpenLog* open_log_new(int64_t ledger, EntryLogWriter* writer) noexcept nogil:
    cdef OpenLog* log
    if writer == NULL:
        return NULL
    log = <OpenLog*> calloc(1, sizeof(OpenLog))
    if log == NULL:
        elog_writer_free(writer)
        return NULL
    log.ledger = ledger
    log.writer = writer
    log.log_id = -1
    return log


cdef void open_log_free(OpenLog* log) noexcept nogil:
    if log != NULL:
        elog_writer_free(log.writer)
        free(log)


cdef inline OpenLog** bucket_of(OpenLogs* logs, int64_t ledger) noexcept nogil:
    cdef uint64_t hash = <uint64_t> ledger * <uint64_t> 0x9E3779B97F4A7C15
    return &logs.buckets[(hash >> 32) & logs.mask]


cdef OpenLog* open_logs_find(OpenLogs* logs, int64_t ledger) noexcept nogil:
    cdef OpenLog* log = bucket_of(logs, ledger)[0]
    while log != NULL and log.ledger != ledger:
        log = log.next
    return log


cdef void unlist(OpenLogs* logs, OpenLog* log) noexcept nogil:
    if log.warmer != NULL:
        log.warmer.colder = log.colder
    else:
        logs.warmest = log.colder
    if log.colder != NULL:
        log.colder.warmer = log.warmer
    else:
        logs.coldest = log.warmer


cdef void list_first(OpenLogs* logs, OpenLog* log) noexcept nogil:
    log.warmer = NULL
    log.colder = logs.warmest
    if logs.warmest != NULL:
        logs.warmest.warmer = log
    else:
        logs.coldest = log
    logs.warmest = log


cdef void open_logs_put(OpenLogs* logs, OpenLog* log) noexcept nogil:
    cdef OpenLog** at = bucket_of(logs, log.ledger)
    log.next = at[0]
    at[0] = log
    logs.count += 1
    list_first(logs, log)


cdef void open_logs_warm(OpenLogs* logs, OpenLog* log) noexcept nogil:
    if logs.warmest != log:
        unlist(logs, log)
        list_first(logs, log)


cdef OpenLog* open_logs_take(OpenLogs* logs, OpenLog* log) noexcept nogil:
    cdef OpenLog** at = bucket_of(logs, log.ledger)
    while at[0] != log:
        at = &at[0].next
    at[0] = log.next
    log.next = NULL
    logs.count -= 1
    unlist(logs, log)
    return log
