"""Entry log ids of one ledger directory: who hands them out, and which of the logs may still be needed as they are.

One LogIds a store, any thread. Every writer of the directory takes its ids here: flush, compaction, a log per ledger.
A log is **open** from before its file exists until its writer has finally synced and closed it *and* the index that
points into it is committed (log_ids_settle). What is not open never changes and may be collected.
Logs of earlier processes are closed: replay has brought back what their index did not know.
"""
from libc.stdint cimport int64_t, uint32_t

from bookie._fast.base.file cimport FileOps
from bookie._fast.base.types cimport Status

cdef enum LogUser:
    # Whose transactions point into a log; what one user settles leaves the other's logs alone.
    LOG_USER_FLUSH = 0
    LOG_USER_COMPACTION = 1

cdef struct LogIds               # opaque

# `directory` is the `current` directory; ids start at `next_id`, names that exist are skipped, 7fffffff is followed by
# 0 as upstream has it. NULL without memory or with a path that is too long.
cdef LogIds* log_ids(FileOps* ops, const char* directory, uint32_t next_id) noexcept nogil
# Every writer is freed.
cdef void log_ids_free(LogIds* ids) noexcept nogil
# Create the next log, empty and open; its descriptor, or -errno and nothing changed. Waits for other creations.
cdef int log_ids_create(LogIds* ids, LogUser user, uint32_t* log_id) noexcept nogil
# Replace `lastId` and sync the directory, so that the log's name and that file become durable together. 0 or -errno.
# An id that is lower than one published before leaves the file as it is.
cdef int log_ids_publish(LogIds* ids, uint32_t log_id) noexcept nogil
# The writer has synced and closed the log; it stays open until its user settles.
cdef void log_ids_close(LogIds* ids, uint32_t log_id) noexcept nogil
# The log was unlinked by its writer, as nothing of it was committed.
cdef void log_ids_drop(LogIds* ids, uint32_t log_id) noexcept nogil
# After the commit of everything that the user appended: its logs that were closed before are collectable from now on.
cdef void log_ids_settle(LogIds* ids, LogUser user) noexcept nogil

cdef bint log_ids_is_open(LogIds* ids, uint32_t log_id) noexcept nogil
# -1: none is open.
cdef int64_t log_ids_least_open(LogIds* ids) noexcept nogil
cdef uint32_t log_ids_open_count(LogIds* ids) noexcept nogil
# What the next creation tries first.
cdef uint32_t log_ids_next(LogIds* ids) noexcept nogil
cdef const char* log_ids_directory(LogIds* ids) noexcept nogil
cdef FileOps* log_ids_ops(LogIds* ids) noexcept nogil
