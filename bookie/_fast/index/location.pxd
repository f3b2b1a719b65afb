"""Where runs of entries lie, and the ledgers' records: one LMDB environment per ledger directory, used without the
GIL.

`locations`: key i64 ledger | i64 first entry; value a packed IndexRun (docs/formats/index.md). Runs never overlap: a
put trims, splits or removes the runs that it covers, so an entry is always found in its latest copy. `ledgers`: key
i64 ledger; value a packed LedgerRecord. `fences`: fences of deleted ledgers, with the time of deletion. Reads: any
thread, each with an IndexReader of its own. Writes: one thread at a time, the holder of `Store.writing`.
"""
from libc.stdint cimport int64_t, uint32_t, uint64_t

from bookie._fast.base.file cimport FileOps
from bookie._fast.base.types cimport Status
from bookie._fast.index.codec cimport RUN_SLOTS_MAX, IndexRun, LedgerRecord, StoredRun
from bookie._fast.index.hit cimport IndexHit
from bookie._fast.index.opening cimport index_close, index_open
from bookie._fast.index.state cimport (
    IndexReader,
    IndexStat,
    LocationIndex,
    fence_fn,
    ledger_fn,
    run_fn,
    stored_fn,
)
from bookie._fast.index.table cimport Moved
from bookie._fast.index.writes cimport (
    index_abort,
    index_append_run,
    index_begin,
    index_commit,
    index_delete_runs,
    index_noted,
    index_put_run,
    index_put_some,
    index_ready,
    index_relocate,
    index_run_leaves,
    index_written_last,
    index_written_run,
)

# Make readers read pages through `ops`. Call it before the first reader is created.
cdef void index_read_through(LocationIndex* index, FileOps* ops) noexcept nogil
cdef const char* index_error_text(int error) noexcept nogil
# Create a reader. Return NULL if no reader slot or memory is left, or the index has failed.
cdef IndexReader* index_reader(LocationIndex* index) noexcept nogil
cdef void index_reader_free(IndexReader* reader) noexcept nogil

# Look up one entry in the latest commit. Return OK, NO_ENTRY, IO_ERROR or CORRUPT. NO_ENTRY only if it is proven; for
# a ledger in doubt, IO_ERROR instead. Damage is noted.
cdef Status index_lookup(IndexReader* reader, int64_t ledger, int64_t entry, IndexHit* hit) noexcept nogil
# Find the first stored entry with id >= `entry`: for readahead over gaps, and for lists of entries.
cdef Status index_next(IndexReader* reader, int64_t ledger, int64_t entry, IndexHit* hit) noexcept nogil
# Find the run that spans `entry`, perhaps as a gap, else the next one. `run` is valid until the reader's next call.
cdef Status index_run_at(IndexReader* reader, int64_t ledger, int64_t entry, IndexRun* run) noexcept nogil
cdef Status index_last(IndexReader* reader, int64_t ledger, int64_t* entry) noexcept nogil
# The walks below pass data that is valid during the callback; a callback must not use the same reader. Any result but
# OK ends the walk and is its result. With `forgiving`, an unreadable ledger record is passed as that of a fenced
# ledger in quarantine, without its key; otherwise it ends the walk with CORRUPT.
cdef Status index_each_ledger(IndexReader* reader, ledger_fn each, void* context, bint forgiving) noexcept nogil
cdef Status index_each_fence(IndexReader* reader, fence_fn each, void* context) noexcept nogil
# Check that each stored doubt is readable; look-ups use those in memory.
cdef Status index_check_doubts(IndexReader* reader) noexcept nogil
cdef Status index_each_run(IndexReader* reader, int64_t ledger, run_fn each, void* context) noexcept nogil
# Pass up to `most` runs of all ledgers in order of (ledger, first entry), beginning at *ledger, *entry, which are
# moved behind the last one. END after the last run. Each call is a read transaction of its own, so that a long walk
# pins no old pages; a run that exists during the whole walk is seen, and each of its records at least once.
cdef Status index_walk(IndexReader* reader, int64_t* ledger, int64_t* entry, uint32_t most, stored_fn each,
                       void* context) noexcept nogil
cdef Status index_stat(IndexReader* reader, IndexStat* stat) noexcept nogil

# Continue `index` with the environment of `fresh`, which is freed; the old environment is closed. Readers notice at
# their next call; calls in progress are waited for. The caller is the writing thread of both, without an open
# transaction.
cdef void index_replace(LocationIndex* index, LocationIndex* fresh) noexcept nogil
