"""Where runs of entries lie, and what a ledger is: one LMDB environment per ledger directory, used without the GIL.

`locations`: key i64 ledger | i64 first entry; value one IndexRun packed (docs/formats/index.md). Runs never overlap:
putting a run trims, splits or removes what it covers, so the latest copy of an entry is the one found.
`ledgers`: key i64 ledger; value one LedgerRecord packed. `fences`: those of deleted ledgers, with the time of that.
Reads: any thread, each with an IndexReader of its own. Writes: one thread at a time, the holder of `Store.writing`.
LMDB comes from the compiled module of the `lmdb` package, so that one process never holds two copies of it.
"""
from libc.stdint cimport int64_t, uint32_t, uint64_t

from bookie._fast.run_codec cimport RUN_SLOTS_MAX, IndexRun, LedgerRecord, StoredRun
from bookie._fast.run_table cimport Moved
from bookie._fast.types cimport Status

cdef enum:
    INDEX_READERS_MAX = 512      # IndexReaders of one index, over all processes

cdef struct IndexHit:
    int64_t entry                # the entry found
    uint32_t log_id
    uint64_t offset              # of its length word
    uint32_t length              # of the entry, without the prefix
    uint64_t span_bytes          # from `offset` to the end of the run: what one pread may bring
    int64_t span_last            # the last entry id of the run
    uint32_t span_entries        # entries of the run from this one on

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

cdef struct LocationIndex        # opaque
cdef struct IndexReader          # opaque: a read transaction kept for renewal; one thread at a time

# `path` is an existing directory, opened once per process. NULL with *error set: an errno, or a code of LMDB's
# (index_error_text names both). `map_bytes` is address space: when the file has grown to it, one
# transaction fails with NO_SPACE, and the next one begins with twice as much, once no read is under way.
cdef LocationIndex* index_open(const char* path, uint64_t map_bytes, int* error) noexcept nogil
# After every reader is freed. An open transaction is aborted.
cdef void index_close(LocationIndex* index) noexcept nogil
cdef const char* index_error_text(int error) noexcept nogil
# NULL when no reader slot or memory is left, or the index has failed.
cdef IndexReader* index_reader(LocationIndex* index) noexcept nogil
cdef void index_reader_free(IndexReader* reader) noexcept nogil

# OK, NO_ENTRY, IO_ERROR or CORRUPT. NO_ENTRY only when LMDB answered. Each call sees the latest commit.
cdef Status index_lookup(IndexReader* reader, int64_t ledger, int64_t entry, IndexHit* hit) noexcept nogil
# The first stored entry with id >= `entry`: for readahead over gaps and listing.
cdef Status index_next(IndexReader* reader, int64_t ledger, int64_t entry, IndexHit* hit) noexcept nogil
# The run that spans `entry`, perhaps as a gap, else the first one behind it. `run` lives until the reader's next call.
cdef Status index_run_at(IndexReader* reader, int64_t ledger, int64_t entry, IndexRun* run) noexcept nogil
cdef Status index_last(IndexReader* reader, int64_t ledger, int64_t* entry) noexcept nogil
# What callbacks are handed lives during the callback. A callback may not use the same reader. Any answer but OK
# ends the walk and is its answer.
cdef Status index_each_ledger(IndexReader* reader, ledger_fn each, void* context) noexcept nogil
cdef Status index_each_fence(IndexReader* reader, fence_fn each, void* context) noexcept nogil
cdef Status index_each_run(IndexReader* reader, int64_t ledger, run_fn each, void* context) noexcept nogil
# Up to `most` runs of all ledgers in order of (ledger, first entry), from *ledger, *entry on, which are left behind the
# last one. END: there are no more. Each call is a read transaction of its own, so that a long walk pins no old pages;
# a run that is there during the whole walk is seen, cut or whole, each of its records once at least.
cdef Status index_walk(IndexReader* reader, int64_t* ledger, int64_t* entry, uint32_t most, stored_fn each,
                       void* context) noexcept nogil
cdef Status index_stat(IndexReader* reader, IndexStat* stat) noexcept nogil

# One write transaction, begun and ended by one thread: begin, puts, then commit (always synced) or abort.
# NO_SPACE for a full disk, quota or map: nothing of the transaction is kept, the index stays usable.
# BAD_REQUEST: no transaction is open (or one is already), or a value breaks its limits; nothing changed.
# After any other failed put the commit answers the same and keeps nothing.
# After a failed write (IO_ERROR) every call on this index and its readers answers IO_ERROR: LMDB would carry on.
cdef Status index_begin(LocationIndex* index) noexcept nogil
# Present slots replace older copies; an older entry whose id is a gap of `run` stays.
cdef Status index_put_run(LocationIndex* index, const IndexRun* run) noexcept nogil
# The same for a run that begins behind `index_written_last`: nothing is looked for.
cdef Status index_append_run(LocationIndex* index, const IndexRun* run) noexcept nogil
# The last entry of a ledger as the open transaction has it; -1: none.
cdef Status index_written_last(LocationIndex* index, int64_t ledger, int64_t* entry) noexcept nogil
cdef Status index_put_ledger(LocationIndex* index, const LedgerRecord* record) noexcept nogil
cdef Status index_put_fence(LocationIndex* index, int64_t ledger, int64_t deleted_ms) noexcept nogil
cdef Status index_delete_fence(LocationIndex* index, int64_t ledger) noexcept nogil
# The record and every run.
cdef Status index_delete_ledger(LocationIndex* index, int64_t ledger) noexcept nogil
# Runs alone, at most `*most` of them, which is lowered by what was deleted. FULL: some are left.
cdef Status index_delete_runs(LocationIndex* index, int64_t ledger, uint32_t* most) noexcept nogil
# The records that still are where `moved` took them from are found at the new place from the commit on; what was
# deleted, or written again elsewhere, meanwhile stays as it is. *bytes grows by what moved, length words included.
cdef Status index_relocate(LocationIndex* index, const Moved* moved, uint64_t* bytes) noexcept nogil
cdef Status index_commit(LocationIndex* index) noexcept nogil
cdef void index_abort(LocationIndex* index) noexcept nogil
