"""Allocates the entry log ids of a ledger directory, and knows which logs are still open.

One LogIds for each store, any thread. All writers of the directory get their ids here: flush, compaction, and a writer
for each ledger. A log is **open** from before its file exists until its writer has finally synced and closed it *and*
the index that points into it is committed (log_ids_settle). A log that is not open never changes and may be collected.
The logs of earlier processes are closed: replay restores everything that their index did not cover.
"""
from libc.stdint cimport int64_t, uint32_t, uint64_t

from bookie._fast.base.file cimport FileOps
from bookie._fast.base.types cimport Status

cdef enum LogUser:
    # Whose index transactions point into a log. Settling one user's logs leaves the other's open.
    LOG_USER_FLUSH = 0
    LOG_USER_COMPACTION = 1

cdef struct LogIds               # opaque

# Create a LogIds for `directory`, which is the `current` directory. Ids start at `next_id`; existing files are
# skipped, and 7fffffff is followed by 0 as in Apache BookKeeper. Return NULL if there is no memory or the path is too
# long.
cdef LogIds* log_ids(FileOps* ops, const char* directory, uint32_t next_id) noexcept nogil
# Free it. Every writer has been freed.
cdef void log_ids_free(LogIds* ids) noexcept nogil
# Create the next log, empty and open. Return its descriptor, or -errno with nothing changed. Creations are serialised.
cdef int log_ids_create(LogIds* ids, LogUser user, uint32_t* log_id) noexcept nogil
# Replace `lastId` and sync the directory, so that the log's name and that file become durable together. A lower id
# than the one published before leaves the file as it is. Return 0 or -errno.
cdef int log_ids_publish(LogIds* ids, uint32_t log_id) noexcept nogil
# Record that the writer has synced and closed the log. It stays open until its user settles.
cdef void log_ids_close(LogIds* ids, uint32_t log_id) noexcept nogil
# Record that the index points at all copies in an open log of compaction that end before `bytes`.
cdef void log_ids_commit(LogIds* ids, uint32_t log_id, uint64_t bytes) noexcept nogil
# Return what was recorded last, 0 at first; -1 for any other log. What follows in the log may be given up.
cdef int64_t log_ids_committed(LogIds* ids, uint32_t log_id) noexcept nogil
# Forget a log that its writer unlinked because nothing of it was committed.
cdef void log_ids_drop(LogIds* ids, uint32_t log_id) noexcept nogil
# Call after the commit of everything that the user appended: its logs that were closed before may be collected now.
cdef void log_ids_settle(LogIds* ids, LogUser user) noexcept nogil
# The same for a user that commits later, and counts its commits: those of its logs that were closed since the last call
# may be collected when it has counted to `due`. Now it has counted to `reached`.
cdef void log_ids_settle_later(LogIds* ids, LogUser user, int64_t due, int64_t reached) noexcept nogil

cdef bint log_ids_is_open(LogIds* ids, uint32_t log_id) noexcept nogil
# Return the lowest id of an open log, or -1 if none is open.
cdef int64_t log_ids_least_open(LogIds* ids) noexcept nogil
cdef uint32_t log_ids_open_count(LogIds* ids) noexcept nogil
# Return the id that the next creation tries first.
cdef uint32_t log_ids_next(LogIds* ids) noexcept nogil
cdef const char* log_ids_directory(LogIds* ids) noexcept nogil
cdef FileOps* log_ids_ops(LogIds* ids) noexcept nogil
