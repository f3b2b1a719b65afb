"""Writes to a location index in one transaction, by one thread at a time: the holder of `Store.writing`."""
from libc.stdint cimport int64_t, uint32_t, uint64_t

from bookie._fast.base.lmdb_c cimport MDB_txn
from bookie._fast.base.types cimport Status
from bookie._fast.index.codec cimport IndexRun
from bookie._fast.index.state cimport LocationIndex
from bookie._fast.index.table cimport Moved

# A write transaction is begun and ended by the same thread: begin, puts, then commit (always synced) or abort.
# NO_SPACE (disk, quota or map is full): nothing of the transaction is kept, and the index stays usable. BAD_REQUEST:
# no transaction is open, or one is open already, or a value is outside its limits; nothing changed. After any other
# failed put, the commit returns the same and keeps nothing. CORRUPT: pages that it needs are damaged. That is noted,
# nothing of the transaction is kept, and the puts have to be repeated after a repair of the index. See index.guard.
# After a failed write (IO_ERROR), every call on this index and its readers returns IO_ERROR; LMDB would carry on.
cdef Status index_begin(LocationIndex* index) noexcept nogil
# Put a run. Its present slots replace older copies; an older entry whose id is a gap of `run` stays.
cdef Status index_put_run(LocationIndex* index, const IndexRun* run) noexcept nogil
# Put the first of several runs of one ledger, which ascend and do not overlap, and as many after it as share its
# search. *put is their number. The pages between the first and the last run are checked, so these should not be far
# apart.
cdef Status index_put_some(LocationIndex* index, const IndexRun* runs, uint32_t count, uint32_t* put) noexcept nogil
# The same for a run after `index_written_last`, without a search for older copies.
cdef Status index_append_run(LocationIndex* index, const IndexRun* run) noexcept nogil
# Get the last entry of a ledger as of the open transaction, or -1.
cdef Status index_written_last(LocationIndex* index, int64_t ledger, int64_t* entry) noexcept nogil
# Get the run that spans `entry`, perhaps as a gap, else the first one after it, as of the open transaction. `run` is
# valid until the transaction's next call.
cdef Status index_written_run(LocationIndex* index, int64_t ledger, int64_t entry, IndexRun* run) noexcept nogil
# Delete runs only, at most `*most`, from which their number is subtracted. FULL: some are left.
cdef Status index_delete_runs(LocationIndex* index, int64_t ledger, uint32_t* most) noexcept nogil
# Point records that still are where `moved` took them from to their copy, as of the commit; records deleted or written
# elsewhere meanwhile are left alone. *bytes grows by the bytes moved, length words included.
cdef Status index_relocate(LocationIndex* index, const Moved* moved, uint64_t* bytes) noexcept nogil
# Return how many leaf pages the runs have, as of the open transaction. LMDB holds each page that a transaction changes
# in memory until its end, and then keeps the memory.
cdef uint64_t index_run_leaves(LocationIndex* index) noexcept nogil
cdef Status index_commit(LocationIndex* index) noexcept nogil
# Publish the last commit to readers. False: it is unreadable, and reads fail until a repair.
cdef bint index_publish(LocationIndex* index) noexcept nogil
# Put number and time of the commit of `txn` into the main tree. Return 0, an errno or an LMDB code.
cdef int commit_numbered(LocationIndex* index, MDB_txn* txn, int64_t begun_ns) noexcept nogil
cdef void index_abort(LocationIndex* index) noexcept nogil

# For the modules with tables of their own in this index: whether a put may begin, and recording its result.
cdef Status index_ready(LocationIndex* index) noexcept nogil
cdef Status index_noted(LocationIndex* index, Status status) noexcept nogil
