"""The files of a journal (docs/formats/journal.md): prepared and zeroed ahead, rolled, reused, retired.

Committers call these functions with `commit_lock`; one preparing thread runs `journal_prepare`. On a full disk they
wait for space; any other failure sets the fatal latch.
"""
from libc.stdint cimport int64_t, uint8_t, uint64_t

from bookie._fast.journal.state cimport Journal

# Write the padding record of `pad` bytes after `used` bytes of records, with the checksum of the group at `start`.
cdef void close_with(uint8_t* group, uint64_t used, uint64_t pad, uint64_t start, int64_t file_id) noexcept nogil
# Call before a group is written up to `end`: no zeros will be written over it.
cdef void claim(Journal* journal, int64_t end) noexcept nogil
cdef bint out_of_space(int rc) noexcept nogil
# Write a whole group. Return 0 or -errno. With `patient`, wait on a full disk until there is space or the journal
# stops.
cdef int write_waiting(Journal* journal, const uint8_t* data, uint64_t size, uint64_t offset,
                       bint patient) noexcept nogil
# Continue in the next file; it is normally prepared already. Return 0, or -errno with the old file unchanged.
cdef int roll(Journal* journal) noexcept nogil
# Make room for the ids of `count` files. False if there is no memory.
cdef bint files_fit(Journal* journal, int64_t count) noexcept nogil
# Prepare the next file; the caller holds `prepare_lock`. Return 0 or -errno.
cdef int prepare_next(Journal* journal) noexcept nogil
# Prepare files and zeros, and retire what a trim gave up, until the journal stops.
cdef void journal_prepare(Journal* journal) noexcept nogil
# Get the (file id, offset) up to which everything is synced.
cdef void journal_mark(Journal* journal, int64_t* file_id, uint64_t* offset) noexcept nogil
# Give up older files beyond the backups. The mark, with this file id, is on disk. The preparing thread retires them, so
# that neither flushes nor commits wait for it; without such a thread the caller does.
cdef void journal_trim(Journal* journal, int64_t mark_file_id) noexcept nogil
# Return the bytes from the beginning of this file to the end of the journal; each older file counts as a full one.
cdef int64_t journal_bytes_since(Journal* journal, int64_t file_id) noexcept nogil
