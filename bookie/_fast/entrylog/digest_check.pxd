"""Digests of entries as they stand in an entry log: which records at known places fail theirs. Any thread."""
from libc.stddef cimport size_t
from libc.stdint cimport int64_t, uint32_t, uint64_t

from bookie._fast.base.file cimport FileOps
from bookie._fast.base.types cimport Status
from bookie._fast.wire.digest cimport Digest

cdef struct Placed:
    uint64_t offset              # of the length word
    uint32_t length              # entry bytes
    const Digest* digest         # NULL: nobody knows; the record is passed over

# bad[i] is set to 1 where rows[i], ascending by offset, is not an entry with a valid digest, else left alone. OK,
# IO_ERROR, NO_MEMORY. A record that the file does not hold whole is bad.
cdef Status digests_check(FileOps* ops, int fd, const Placed* rows, size_t count, unsigned char* bad) noexcept nogil
