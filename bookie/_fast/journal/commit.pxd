"""The journal: group commit into preallocated files (docs/formats/journal.md).

Appenders (I/O loops) copy records into the open group; a committer closes it, writes it, syncs it and publishes its
number. The journal thread commits; an I/O loop may commit itself when it is alone (`journal_commit`). After a failed
write or sync the process-wide fatal latch is set and no further group is ever published.
"""
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from bookie._fast.base.waker cimport Waker
from bookie._fast.journal.state cimport Journal

# Copy `u32 size | data` into the open group. Its number, or 0 when the group is full: try again after a commit.
cdef int64_t journal_append(Journal* journal, const uint8_t* data, uint32_t size) noexcept nogil
# A hint without a lock: an append of this size would fit now.
cdef bint journal_has_room(Journal* journal, uint32_t size) noexcept nogil
cdef int64_t journal_append_meta(Journal* journal, int64_t ledger, int64_t kind, const uint8_t* data,
                                 uint32_t size) noexcept nogil
# Tell the journal thread that there is something: once per batch of appends.
cdef void journal_kick(Journal* journal) noexcept nogil
# Close, write and sync the open group now; nothing to do is fine. False after a failure. Loops that wait are woken, but
# for the one that commits (NULL: none). A loop never waits for another committer, room on the disk or a new file: the
# journal thread does.
cdef bint journal_commit(Journal* journal, Waker* committer) noexcept nogil
cdef bint journal_idle(Journal* journal) noexcept nogil
# The last group that holds anything: once it is synced, so is all that was appended before the call.
cdef int64_t journal_last_group(Journal* journal) noexcept nogil
cdef class JournalCommitter:
    cdef Journal* journal
    cdef uint64_t mapped         # bytes of the memory of each group
    cdef object files
