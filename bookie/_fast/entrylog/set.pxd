"""The entry logs to which a flush writes: one for all ledgers, or one for each (`entryLogPerLedgerEnabled`).

It belongs to the thread that flushes; others read only the counters. All logs of a set share one buffer. A set has at
most `active_max` logs that take entries and LOGS_ENDING_MOST that are being closed, each with a descriptor and a few
KiB of memory.

Between two commits a flush appends and syncs, and settles after the commit; or it gives up, which removes everything
appended since the last settle. Logs are closed in four steps, each for a whole batch so that its logs share the disk's
work: write the maps, sync them, write the headers, sync them.
"""
from libc.stdint cimport int64_t, uint32_t, uint64_t

from bookie._fast.base.by_age cimport ByAge
from bookie._fast.base.file cimport iovec
from bookie._fast.base.op_stats cimport OpStats
from bookie._fast.base.sync_many cimport SYNCS_MOST
from bookie._fast.base.types cimport Status
from bookie._fast.entrylog.ids cimport LogIds

cdef struct LogCounts:
    # How many entry logs each ledger took, if each ledger has its own. A ledger is counted while it is being written.
    # Its count is recorded when it ends, or early if more than `most` ledgers are counted, oldest first log first.
    ByAge counts
    uint32_t most
    int64_t several              # atomic; ledgers that began a second log
    OpStats noted                # logs of each ledger that ended

cdef enum:
    LOGS_ENDING_MOST = SYNCS_MOST
    LEDGERS_A_LOG = 10           # ledgers that are counted for each of `active_max`, as in Apache BookKeeper

cdef struct LogSetStats:
    # Atomic counters.
    int64_t active               # logs that take entries
    int64_t expired              # closed because nothing was appended for the expiry time
    int64_t displaced            # closed to make room for another ledger's log
    int64_t write_closed         # closed because the end of the ledger was announced

cdef struct LogSet               # opaque

# With `active_max` 0, one log for all ledgers; else a log for each ledger, closed when nothing was appended to it for
# `expiry_ns`, or as the least recently used of more than `active_max`. `ids` outlives the set. NULL if there is no
# memory.
cdef LogSet* log_set(LogIds* ids, uint64_t size_limit, uint32_t active_max, int64_t expiry_ns) noexcept nogil
# Free the set. Its logs end at their last sync, without a map.
cdef void log_set_free(LogSet* logs) noexcept nogil
# Like writer_hurry, for all logs.
cdef void log_set_hurry(LogSet* logs, bint hurry) noexcept nogil
# Like writer_append, to the ledger's log. After NO_SPACE, all calls return that until log_set_give_up.
cdef Status log_set_append(LogSet* logs, int64_t ledger, iovec* parts, int count, uint64_t size, uint32_t* log_id,
                           uint64_t* offset) noexcept nogil
# Mark a ledger as expecting no more entries, until the next settle. No effect if one log takes all ledgers.
cdef void log_set_mark(LogSet* logs, int64_t ledger) noexcept nogil
# Begin to close the log of `ledger` if the ledger is marked; the second function does so for all marked ledgers.
cdef Status log_set_end_marked(LogSet* logs, int64_t ledger) noexcept nogil
cdef Status log_set_end_all_marked(LogSet* logs) noexcept nogil
# Begin to close logs to which nothing was appended for the expiry time. `now` is a value of now_ns().
cdef Status log_set_expire(LogSet* logs, int64_t now) noexcept nogil
# After OK, everything appended is on disk, `lastId` covers all logs, and the logs that had to be closed are closed.
cdef Status log_set_sync(LogSet* logs) noexcept nogil
# Call when what was appended to the synced logs is in the index or will be put there; nothing of it is given up any
# more. The user counts commits of the index: logs that were closed may be collected when it has counted to `due`, and
# `reached` is its count. See log_ids_settle_later.
cdef void log_set_settle(LogSet* logs, int64_t due, int64_t reached) noexcept nogil
# Undo a failed flush, so that it can begin anew: logs end where they ended at the last settle, and those created since
# are removed. Clears NO_SPACE.
cdef void log_set_give_up(LogSet* logs) noexcept nogil
# Return the most memory, in bytes, that a set allocates.
cdef uint64_t log_set_bytes_max(uint32_t active_max) noexcept nogil
cdef LogSetStats* log_set_stats(LogSet* logs) noexcept nogil
cdef const LogCounts* log_set_counts(LogSet* logs) noexcept nogil
