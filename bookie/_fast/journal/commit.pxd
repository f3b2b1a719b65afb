"""The journal: group commit into preallocated files (docs/formats/journal.md).

Appenders (I/O loops) copy records into the open group; a committer closes it, writes it, syncs it and publishes its
number. The journal thread commits; an I/O loop that is alone may commit itself (`journal_commit`). After a failed
write or sync, the process-wide fatal latch is set and no further group is ever published.
"""
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from bookie._fast.base.waker cimport Waker
from bookie._fast.journal.state cimport Journal

# Copy `u32 size | data` into the open group. Return the group's number, or 0 if it is full: retry after a commit.
cdef int64_t journal_append(Journal* journal, const uint8_t* data, uint32_t size) noexcept nogil
# Return whether an append of this size would fit now: a hint, taken without a lock.
cdef bint journal_has_room(Journal* journal, uint32_t size) noexcept nogil
# The same for a metadata record: a fence (`data` NULL), a key or a LAC.
cdef int64_t journal_append_meta(Journal* journal, int64_t ledger, int64_t kind, const uint8_t* data,
                                 uint32_t size) noexcept nogil
# Tell the journal thread that records were appended: once per batch of appends.
cdef void journal_kick(Journal* journal) noexcept nogil
# Close, write and sync the open group now, if it holds anything. Return False after a failure. Waiting loops are
# woken, except the committing one (`committer`; NULL for the journal thread). A loop never waits for another
# committer, for space on the disk or for a new file; it leaves that to the journal thread.
cdef bint journal_commit(Journal* journal, Waker* committer) noexcept nogil
# Return whether nothing is being written and the file is ready, so that a commit by the caller costs one sync.
cdef bint journal_idle(Journal* journal) noexcept nogil
# Return the last group that holds anything: once it is synced, so is everything appended before the call.
cdef int64_t journal_last_group(Journal* journal) noexcept nogil
cdef class JournalCommitter:
    cdef Journal* journal
    cdef uint64_t mapped         # bytes mapped for each group
    cdef object files
