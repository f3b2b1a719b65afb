"""The entry logs that a store's flush writes: one for all ledgers, or one for each (`entryLogPerLedgerEnabled`).

The flush thread's; only the counters are read by others. All logs of a set share one buffer. A set holds at most
`active_max` logs that take entries, and LOGS_ENDING_MOST that are being closed, each with a descriptor and a few KiB.

Between two commits a flush appends, syncs, and after the commit settles; or it gives up, which takes away everything
that was appended since the last settle. Closing a log is four steps for a whole batch of logs, so that they share the
disk's work: map written, map synced, header written, header synced.
"""
from libc.stdint cimport int64_t, uint32_t, uint64_t

from bookie._fast.base.by_age cimport ByAge
from bookie._fast.base.file cimport iovec
from bookie._fast.base.op_stats cimport OpStats
from bookie._fast.base.sync_many cimport SYNCS_MOST
from bookie._fast.base.types cimport Status
from bookie._fast.entrylog.ids cimport LogIds

cdef struct LogCounts:
    # How many entry logs each ledger took, where each has its own: counted while a ledger is written, noted when it
    # ends, or early when more than `most` are counted, those whose first log lies furthest back.
    ByAge counts
    uint32_t most
    int64_t several              # atomic; ledgers that began a second log
    OpStats noted                # logs of each ledger that ended

cdef enum:
    LOGS_ENDING_MOST = SYNCS_MOST
    LEDGERS_A_LOG = 10           # ledgers whose logs are counted, for each of `active_max`; as upstream

cdef struct LogSetStats:
    # atomics
    int64_t active               # logs that take entries
    int64_t expired              # closed as nobody had written to them for long
    int64_t displaced            # closed to make room for another ledger's
    int64_t write_closed         # closed as their ledger's end was announced

cdef struct LogSet               # opaque

# `active_max` 0: one log for all ledgers; else a log for each, closed when it was not appended to for `expiry_ns`, or
# as the coldest of more than `active_max`. `ids` outlive the set. NULL without memory.
cdef LogSet* log_set(LogIds* ids, uint64_t size_limit, uint32_t active_max, int64_t expiry_ns) noexcept nogil
# Logs end at their last sync, without a map.
cdef void log_set_free(LogSet* logs) noexcept nogil
# As elog_hurry, for all logs.
cdef void log_set_hurry(LogSet* logs, bint hurry) noexcept nogil
# As elog_append, to the ledger's log. After NO_SPACE everything answers the same, until log_set_give_up.
cdef Status log_set_append(LogSet* logs, int64_t ledger, iovec* parts, int count, uint64_t size, uint32_t* log_id,
                           uint64_t* offset) noexcept nogil
# Note that this ledger expects no more entries; forgotten at the next settle. Without effect on a log for all.
cdef void log_set_mark(LogSet* logs, int64_t ledger) noexcept nogil
# Begin to close the ledger's log if the ledger is marked, or all marked ledgers' logs.
cdef Status log_set_end_marked(LogSet* logs, int64_t ledger) noexcept nogil
cdef Status log_set_end_all_marked(LogSet* logs) noexcept nogil
# Begin to close what was not appended to since `now` (as now_ns()) - expiry.
cdef Status log_set_expire(LogSet* logs, int64_t now) noexcept nogil
# Everything appended is on disk, `lastId` covers all logs, and those that were to be closed are.
cdef Status log_set_sync(LogSet* logs) noexcept nogil
# The index that points into what was synced is committed: closed logs may be collected.
cdef void log_set_settle(LogSet* logs) noexcept nogil
# The flush failed and begins anew: logs end where they ended at the last settle, those created since are removed.
# Clears NO_SPACE.
cdef void log_set_give_up(LogSet* logs) noexcept nogil
# What the set allocates at most, in bytes.
cdef uint64_t log_set_bytes_max(uint32_t active_max) noexcept nogil
cdef LogSetStats* log_set_stats(LogSet* logs) noexcept nogil
cdef const LogCounts* log_set_counts(LogSet* logs) noexcept nogil
