"""Whether a record of an entry log is the one that the index points at: one look-up a run, not one an entry.

One thread, with an IndexReader of its own. What was looked up is remembered for a while, so an answer may be as old as
the scan: who acts on LIVE goes by index_relocate, which looks again.
"""
from libc.stdint cimport int64_t, uint32_t

from bookie._fast.base.types cimport Status
from bookie._fast.entrylog.scan cimport LogRecord
from bookie._fast.index.codec cimport RUN_SLOTS_MAX
from bookie._fast.index.location cimport IndexReader
from bookie._fast.store.stores cimport Store

cdef enum:
    LIVENESS_RUNS = 64           # remembered, by ledger: 8 KiB each

cdef enum Verdict:
    LIVE = 0
    ELSEWHERE = 1                # the index has the entry, at another place
    DELETED = 2                  # the ledger is not known here
    ORPHAN = 3                   # the ledger is, and the index has no such entry: it lies, or the log does
    DISAGREES = 4                # the index points here, and tells another length
    HELD = 5                     # ELSEWHERE or ORPHAN, of a ledger in quarantine: it may be the copy that mends it

cdef struct Remembered:
    int64_t ledger
    int64_t first                # entry ids that the answer is about
    int64_t last
    uint32_t log_id
    bint stored                  # a run; else: the index has none of these
    bint known                   # the ledger is
    bint held                    # it is in quarantine
    uint32_t base                # offset of the run's first record in its log
    uint32_t starts[RUN_SLOTS_MAX]      # of each record, from `base`
    uint32_t lengths[RUN_SLOTS_MAX]     # 0: a gap

cdef struct Liveness:
    Store* store
    IndexReader* reader          # the caller's
    Remembered* slots            # LIVENESS_RUNS

# NO_MEMORY or OK.
cdef Status liveness_init(Liveness* liveness, Store* store, IndexReader* reader) noexcept nogil
cdef void liveness_free(Liveness* liveness) noexcept nogil
# Forget everything: before each scan.
cdef void liveness_clear(Liveness* liveness) noexcept nogil
# OK with the verdict on a record of log `log_id`; IO_ERROR or CORRUPT: the index cannot be asked.
cdef Status judge(Liveness* liveness, uint32_t log_id, const LogRecord* record, Verdict* verdict) noexcept nogil
cdef bint ledger_is_known(Store* store, int64_t ledger) noexcept nogil
