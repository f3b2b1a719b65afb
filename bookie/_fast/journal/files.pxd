"""The files of a journal (docs/formats/journal.md): made ready ahead, zeroed ahead, rolled, reused, retired.

The committer calls under commit_lock; one preparing thread runs `journal_prepare`. A full disk is waited out, any other
failure sets the fatal latch.
"""
from libc.stdint cimport int64_t, uint8_t, uint64_t

from bookie._fast.journal.state cimport Journal

# The padding record of `pad` bytes behind `used` bytes of records, with the checksum of the group starting at `start`.
cdef void close_with(uint8_t* group, uint64_t used, uint64_t pad, uint64_t start, int64_t file_id) noexcept nogil
# Before a group is written up to `end`: no zeros will be written over it.
cdef void claim(Journal* journal, int64_t end) noexcept nogil
cdef bint out_of_space(int rc) noexcept nogil
# 0 or -errno. On a full disk the patient get their answer when there is room, or when the journal stops.
cdef int write_waiting(Journal* journal, const uint8_t* data, uint64_t size, uint64_t offset,
                       bint patient) noexcept nogil
cdef int roll(Journal* journal) noexcept nogil
cdef int prepare_next(Journal* journal) noexcept nogil
cdef void journal_prepare(Journal* journal) noexcept nogil
# Everything up to (file id, offset) is synced.
cdef void journal_mark(Journal* journal, int64_t* file_id, uint64_t* offset) noexcept nogil
# The mark (file id) is on disk: retire older files beyond the backups.
cdef void journal_trim(Journal* journal, int64_t mark_file_id) noexcept nogil
# Bytes from the beginning of this file to the end of the journal, each older file counted as a full one.
cdef int64_t journal_bytes_since(Journal* journal, int64_t file_id) noexcept nogil
