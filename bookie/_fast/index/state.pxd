"""The state of an open location index and of its readers. No functions; each field says which thread owns it."""
from libc.stdint cimport int64_t, uint32_t, uint64_t

from bookie._fast.base.bounds cimport READ_THREADS_MAX
from bookie._fast.base.lmdb_c cimport MDB_dbi, MDB_env, MDB_txn
from bookie._fast.base.types cimport Status
from bookie._fast.index.codec cimport RUN_SLOTS_MAX, IndexRun, LedgerRecord, StoredRun
from bookie._fast.index.commit_value cimport COMMIT_SUMS
from bookie._fast.index.damage cimport IndexDamage
from bookie._fast.index.doubts cimport Doubts
from bookie._fast.index.guard cimport Guard
from bookie._fast.index.pending cimport Pending
from bookie._fast.index.search cimport RunSearch
from bookie._fast.index.snapshot cimport IndexSnapshot, SnapshotUser, Snapshots
from bookie._fast.index.table cimport RunWriter

cdef enum:
    INDEX_READERS_MAX = 2 * READ_THREADS_MAX     # IndexReaders of one index, over all processes

cdef struct IndexStat:
    uint64_t runs                # stored values, not entries
    uint64_t run_pages
    uint64_t ledgers
    uint64_t ledger_pages
    uint64_t page_bytes
    uint64_t file_bytes          # what data.mdb occupies, free pages included

ctypedef Status (*ledger_fn)(void* context, const LedgerRecord* record) noexcept nogil
ctypedef Status (*run_fn)(void* context, const IndexRun* run) noexcept nogil
ctypedef Status (*fence_fn)(void* context, int64_t ledger, int64_t deleted_ms) noexcept nogil
ctypedef Status (*stored_fn)(void* context, const StoredRun* run) noexcept nogil

cdef struct IndexReader

cdef struct LocationIndex:
    # Changed only by `index_replace`, while there are no reads.
    MDB_env* env
    MDB_dbi locations
    MDB_dbi ledgers
    MDB_dbi fences
    MDB_dbi doubtful
    MDB_dbi main                            # the tree that has the tables, and the number of its own commit
    IndexDamage damage
    Doubts doubts
    Pending pending                         # runs that are not in LMDB yet
    int64_t failed                          # atomic; set by the writing thread, never cleared
    int64_t inside                          # atomic; number of read transactions that are open
    int64_t moving                          # atomic; the map is being replaced, no read may begin
    # Owned by the writing thread.
    MDB_txn* txn                            # NULL outside a transaction
    Status broken                           # the first failure inside the open transaction
    bint wrote                              # something was put or deleted, so that its commit writes a meta page
    uint64_t[COMMIT_SUMS] sums              # as the next commit stores them (index.commit_value)
    uint64_t[COMMIT_SUMS] committed_sums    # of the last one
    int64_t full_maps                       # `mdb_full_maps` when it began
    bint too_small                          # the map was full: the next transaction enlarges it first
    RunWriter runs
    Guard guard
    Snapshots snapshots                     # published by the writing thread; its users are the readers

cdef struct IndexReader:
    # A read transaction kept for renewal, which pins the pages of a snapshot. One thread at a time.
    SnapshotUser user                       # the first member, so that a user can be cast to its reader
    LocationIndex* index
    MDB_txn* txn                            # NULL after the environment was replaced, until the next call
    IndexSnapshot* snapshot                 # set during a call
    int64_t ended                           # the doubts that had ended before the snapshot was taken
    RunSearch search
    uint32_t[RUN_SLOTS_MAX] lengths
