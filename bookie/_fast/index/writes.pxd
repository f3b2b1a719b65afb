"""Writes to a location index: one thread at a time, the holder of `Store.writing`, in one transaction."""
from libc.stdint cimport int64_t, uint32_t, uint64_t

from bookie._fast.base.types cimport Status
from bookie._fast.index.codec cimport IndexRun
from bookie._fast.index.state cimport LocationIndex
from bookie._fast.index.table cimport Moved

# One write transaction, begun and ended by one thread: begin, puts, then commit (always synced) or abort.
# NO_SPACE for a full disk, quota or map: nothing of the transaction is kept, the index stays usable.
# BAD_REQUEST: no transaction is open (or one is already), or a value breaks its limits; nothing changed.
# After any other failed put the commit answers the same and keeps nothing.
# CORRUPT: the pages that it would have touched are damaged. It is noted, the transaction comes to nothing, the index is
# to be repaired, and what was to be put is put again. See index_guard.
# After a failed write (IO_ERROR) every call on this index and its readers answers IO_ERROR: LMDB would carry on.
cdef Status index_begin(LocationIndex* index) noexcept nogil
# Present slots replace older copies; an older entry whose id is a gap of `run` stays.
cdef Status index_put_run(LocationIndex* index, const IndexRun* run) noexcept nogil
# The same for a run that begins behind `index_written_last`: nothing is looked for.
cdef Status index_append_run(LocationIndex* index, const IndexRun* run) noexcept nogil
# The last entry of a ledger as the open transaction has it; -1: none.
cdef Status index_written_last(LocationIndex* index, int64_t ledger, int64_t* entry) noexcept nogil
# The run that spans `entry`, perhaps as a gap, else the first one behind it, as the open transaction has them. `run`
# lives until the next call of the transaction.
cdef Status index_written_run(LocationIndex* index, int64_t ledger, int64_t entry, IndexRun* run) noexcept nogil
# Runs alone, at most `*most` of them, which is lowered by what was deleted. FULL: some are left.
cdef Status index_delete_runs(LocationIndex* index, int64_t ledger, uint32_t* most) noexcept nogil
# The records that still are where `moved` took them from are found at the new place from the commit on; what was
# deleted, or written again elsewhere, meanwhile stays as it is. *bytes grows by what moved, length words included.
cdef Status index_relocate(LocationIndex* index, const Moved* moved, uint64_t* bytes) noexcept nogil
cdef Status index_commit(LocationIndex* index) noexcept nogil
# Let readers go on with the last commit. False: it cannot be read, and neither can they.
cdef bint index_publish(LocationIndex* index) noexcept nogil
cdef void index_abort(LocationIndex* index) noexcept nogil

# For the modules that keep tables of their own here. Whether a put may go on; and what one came to.
cdef Status index_ready(LocationIndex* index) noexcept nogil
cdef Status index_noted(LocationIndex* index, Status status) noexcept nogil
