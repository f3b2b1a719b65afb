"""How many entry logs each ledger took, where each has its own: counted while a ledger is written, noted when it ends.

The flush thread's; `several` and `noted` are read by anybody. The ledgers whose first log lies furthest back are noted
early when there are more than `most`.
"""
from libc.stdint cimport int64_t, uint32_t

from bookie._fast.base.by_age cimport Aged, ByAge
from bookie._fast.base.op_stats cimport OpStats

cdef struct LogCount:
    Aged aged                    # by first log
    int64_t logs

cdef struct LogCounts:
    ByAge counts
    uint32_t most
    int64_t several              # atomic; ledgers that began a second log
    OpStats noted                # logs of each ledger that ended

# False without memory. One of zeros may be freed.
cdef bint log_counts_init(LogCounts* counts, uint32_t most) noexcept nogil
cdef void log_counts_free(LogCounts* counts) noexcept nogil
# The ledger begins a log. Without memory it is not counted.
cdef void log_counts_begin(LogCounts* counts, int64_t ledger) noexcept nogil
# No more logs are expected of the ledger: note how many it took, if any.
cdef void log_counts_end(LogCounts* counts, int64_t ledger) noexcept nogil
