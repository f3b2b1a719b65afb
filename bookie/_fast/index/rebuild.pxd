"""Rebuilds a location index from entry logs: scan, sort a batch of records, put runs, in transactions of bounded size.

One thread for each Rebuild from the first log to finish(), because LMDB binds a write transaction to its thread. The
caller owns the Index: new, empty, and used by nothing else. Memory: two buffers of half `stretch_bytes`, and some
bytes for each ledger found. Logs are scanned in ascending order of their ids: the copy of an entry that is put last
wins.
"""
from libc.stddef cimport size_t
from libc.stdint cimport int64_t, uint32_t, uint64_t

from bookie._fast.base.types cimport Status
from bookie._fast.entrylog.ledger_bytes cimport LedgerMap
from bookie._fast.index.codec cimport RUN_SLOTS_MAX, IndexRun
from bookie._fast.index.location cimport LocationIndex

cdef struct Located:
    int64_t ledger               # >= 0, as is `entry`
    int64_t entry
    uint32_t offset              # of the length word
    uint32_t length              # entry bytes, without the length word

cdef enum:
    REBUILD_GAP_MOST = 8         # more missing ids than this start a new stored run, as in a flush
    REBUILD_RUNS_A_COMMIT = 1 << 17

cdef struct Rebuilding:
    LocationIndex* index
    const int64_t* wanted        # ids of the ledgers to rebuild, ascending; NULL for all
    size_t wanted_count
    int64_t answered             # the ledger that `answer` is about; -1 at first
    bint answer
    Located* rows                # records of the current log, in scan order
    Located* spare
    size_t count
    size_t capacity
    bint ordered                 # `rows` are sorted already
    uint32_t log_id
    uint64_t bytes_end           # the call ends at the first record from this offset on
    bint paused                  # the call ended there
    IndexRun run                 # the run being collected; count 0 if there is none
    uint32_t[RUN_SLOTS_MAX] lengths
    int64_t put_ledger           # the ledger of the last run put; -1 before the first
    int64_t put_last             # its last entry in the index
    uint64_t run_end             # where the next record of `run` must lie
    uint64_t taken               # records of wanted ledgers
    uint64_t odd                 # records whose ids no index can hold
    uint64_t runs                # runs put
    uint32_t uncommitted         # runs in the open transaction
    bint begun
    LedgerMap ledgers            # bytes found of each ledger
    Status failed                # why a put or an allocation stopped the scan
