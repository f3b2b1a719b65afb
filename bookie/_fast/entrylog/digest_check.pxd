"""Checks the digests of records at known offsets of an entry log. Any thread."""
from libc.stddef cimport size_t
from libc.stdint cimport int64_t, uint32_t, uint64_t

from bookie._fast.base.file cimport FileOps
from bookie._fast.base.types cimport Status
from bookie._fast.wire.digest cimport Digest

cdef struct Placed:
    uint64_t offset              # of the length word
    uint32_t length              # entry bytes
    const Digest* digest         # NULL: unknown; the record is skipped

# Set bad[i] to 1 if rows[i] is not an entry with a valid digest; other elements stay as they are. `rows` ascend by
# offset. A record that the file does not hold completely is bad. Return OK, IO_ERROR or NO_MEMORY.
cdef Status digests_check(FileOps* ops, int fd, const Placed* rows, size_t count, unsigned char* bad) noexcept nogil
