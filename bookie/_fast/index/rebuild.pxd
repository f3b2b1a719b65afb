"""A location index made anew from entry logs: scan, sort a stretch, put runs, in transactions of bounded size.

One thread a Rebuild, from the first log to finish(), because LMDB ties a write transaction to its thread. The Index is
the caller's: new, empty, and nobody else's. Memory: two buffers of half the stretch, and some bytes a ledger found.
Logs are given in ascending id: the copy of an entry that is put last is the one found.
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
    uint32_t length              # entry bytes, without the prefix

cdef enum:
    REBUILD_GAP_MOST = 8         # a hole of more ids than this starts a new stored run, as at a flush
    REBUILD_RUNS_A_COMMIT = 1 << 17

cdef struct Rebuilding:
    LocationIndex* index
    const int64_t* wanted        # ledgers to take, ascending; NULL: all
    size_t wanted_count
    int64_t asked                # the ledger that `answer` is about; -1 before the first
    bint answer
    Located* rows                # of the log under way, in scan order
    Located* spare
    size_t count
    size_t capacity
    bint ordered                 # `rows` are sorted as they came
    uint32_t log_id
    uint64_t bytes_end           # the call ends at the first record from this offset on
    bint paused                  # it did
    IndexRun run                 # the run being gathered; count 0: none
    uint32_t[RUN_SLOTS_MAX] lengths
    int64_t put_ledger           # the ledger of the last run that was put; -1: none was
    int64_t put_last             # its last entry in the index
    uint64_t run_end             # where its next record has to lie
    uint64_t taken               # records of wanted ledgers
    uint64_t odd                 # records whose ids no index can hold
    uint64_t runs                # put
    uint32_t uncommitted         # runs in the open transaction
    bint begun
    LedgerMap ledgers            # bytes found a ledger
    Status failed                # why a put or an allocation stopped the scan
