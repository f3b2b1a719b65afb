"""Tells whether a record of an entry log is the one that the index points at, with one look-up per run instead of
entry.

One thread, with an IndexReader of its own. Look-ups are remembered for a while, so a verdict may be as old as the
scan: to act on LIVE, use index_relocate, which checks again.
"""
from libc.stdint cimport int64_t, uint32_t

from bookie._fast.base.types cimport Status
from bookie._fast.entrylog.scan cimport LogRecord
from bookie._fast.index.codec cimport RUN_SLOTS_MAX
from bookie._fast.index.location cimport IndexReader
from bookie._fast.store.stores cimport Store

cdef enum:
    LIVENESS_RUNS = 64           # number of runs remembered, by ledger; 8 KiB each

cdef enum Verdict:
    LIVE = 0
    ELSEWHERE = 1                # the index has the entry at another place
    DELETED = 2                  # the ledger does not exist here
    ORPHAN = 3                   # the ledger exists and the index has no such entry: either it or the log is wrong
    DISAGREES = 4                # the index points here with another length
    HELD = 5                     # ELSEWHERE or ORPHAN, of a ledger in quarantine: may be a copy needed for its repair

cdef struct Remembered:
    int64_t ledger
    int64_t first                # entry ids that the look-up covers
    int64_t last
    uint32_t log_id
    bint stored                  # they are a run; else the index has none of them
    bint known                   # the ledger exists
    bint held                    # it is in quarantine
    uint32_t base                # offset of the run's first record in its log
    uint32_t starts[RUN_SLOTS_MAX]      # of each record, from `base`
    uint32_t lengths[RUN_SLOTS_MAX]     # 0 for a gap

cdef struct Liveness:
    Store* store
    IndexReader* reader          # owned by the caller
    Remembered* slots            # LIVENESS_RUNS

# Return OK or NO_MEMORY.
cdef Status liveness_init(Liveness* liveness, Store* store, IndexReader* reader) noexcept nogil
cdef void liveness_free(Liveness* liveness) noexcept nogil
# Forget all look-ups; call it before each scan.
cdef void liveness_clear(Liveness* liveness) noexcept nogil
# Get the verdict on a record of log `log_id`. Return OK; IO_ERROR or CORRUPT if the index cannot be read.
cdef Status judge(Liveness* liveness, uint32_t log_id, const LogRecord* record, Verdict* verdict) noexcept nogil
cdef bint ledger_is_known(Store* store, int64_t ledger) noexcept nogil
