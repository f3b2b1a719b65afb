"""Where runs of entries lie, and what a ledger is: one LMDB environment per ledger directory, used without the GIL.

`locations`: key i64 ledger | i64 first entry; value one IndexRun packed (docs/formats/index.md). Runs never overlap:
putting a run trims, splits or removes what it covers, so the latest copy of an entry is the one found.
`ledgers`: key i64 ledger; value one LedgerRecord packed. `fences`: those of deleted ledgers, with the time of that.
Reads: any thread, each with an IndexReader of its own. Writes: one thread at a time, the holder of `Store.writing`.
LMDB comes from the compiled module of the `lmdb` package, so that one process never holds two copies of it.
"""
from libc.stdint cimport int64_t, uint32_t, uint64_t

from bookie._fast.base.file cimport FileOps
from bookie._fast.base.types cimport Status
from bookie._fast.index.codec cimport RUN_SLOTS_MAX, IndexRun, LedgerRecord, StoredRun
from bookie._fast.index.state cimport (
    IndexHit,
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
    index_ready,
    index_relocate,
    index_written_last,
    index_written_run,
)

# `path` is an existing directory, opened once per process. NULL with *error set: an errno, or a code of LMDB's
# (index_error_text names both). `map_bytes` is address space: when the file has grown to it, one
# transaction fails with NO_SPACE, and the next one begins with twice as much, once no read is under way.
cdef LocationIndex* index_open(const char* path, uint64_t map_bytes, int* error) noexcept nogil
# Readers read its pages through `ops` from now on; before any of them is made.
cdef void index_read_through(LocationIndex* index, FileOps* ops) noexcept nogil
# After every reader is freed. An open transaction is aborted.
cdef void index_close(LocationIndex* index) noexcept nogil
cdef const char* index_error_text(int error) noexcept nogil
# NULL when no reader slot or memory is left, or the index has failed.
cdef IndexReader* index_reader(LocationIndex* index) noexcept nogil
cdef void index_reader_free(IndexReader* reader) noexcept nogil

# OK, NO_ENTRY, IO_ERROR or CORRUPT. NO_ENTRY only when it is proven, and of no ledger that lost runs with a damaged
# part (IO_ERROR). Damage is noted, whoever meets it. Each call sees the latest commit.
cdef Status index_lookup(IndexReader* reader, int64_t ledger, int64_t entry, IndexHit* hit) noexcept nogil
# The first stored entry with id >= `entry`: for readahead over gaps and listing.
cdef Status index_next(IndexReader* reader, int64_t ledger, int64_t entry, IndexHit* hit) noexcept nogil
# The run that spans `entry`, perhaps as a gap, else the first one behind it. `run` lives until the reader's next call.
cdef Status index_run_at(IndexReader* reader, int64_t ledger, int64_t entry, IndexRun* run) noexcept nogil
cdef Status index_last(IndexReader* reader, int64_t ledger, int64_t* entry) noexcept nogil
# What callbacks are handed lives during the callback. A callback may not use the same reader. Any answer but OK
# ends the walk and is its answer.
# With `forgiving`, a record that cannot be read is handed over as that of a fenced ledger in quarantine, without its
# key; else it ends the walk with CORRUPT.
cdef Status index_each_ledger(IndexReader* reader, ledger_fn each, void* context, bint forgiving) noexcept nogil
cdef Status index_each_fence(IndexReader* reader, fence_fn each, void* context) noexcept nogil
# Whether each doubt can be read: answers go by those in memory.
cdef Status index_check_doubts(IndexReader* reader) noexcept nogil
cdef Status index_each_run(IndexReader* reader, int64_t ledger, run_fn each, void* context) noexcept nogil
# Up to `most` runs of all ledgers in order of (ledger, first entry), from *ledger, *entry on, which are left behind the
# last one. END: there are no more. Each call is a read transaction of its own, so that a long walk pins no old pages;
# a run that is there during the whole walk is seen, cut or whole, each of its records once at least.
cdef Status index_walk(IndexReader* reader, int64_t* ledger, int64_t* entry, uint32_t most, stored_fn each,
                       void* context) noexcept nogil
cdef Status index_stat(IndexReader* reader, IndexStat* stat) noexcept nogil

# Let `index` go on with the environment of `fresh`, which is freed; the old one is closed. Readers find out at their
# next call; those under way are waited for. The caller is the writing thread of both, and has no transaction open.
cdef void index_replace(LocationIndex* index, LocationIndex* fresh) noexcept nogil
