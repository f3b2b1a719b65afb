"""The main tree's own value: the number and time of its commit, and a sum over the values of each table but the runs.

The sum of a table is that of the checksums which its values begin with. It shows that a page of the table holds an
older state of itself, which is sound and may have as many values (docs/formats/index.md). Runs need none: they form a
chain. The time tells a commit from one with the same number that was begun before a restart or a failure, and of which
the disk may still hold pages. No state, any thread.
"""
from libc.stdint cimport int64_t, uint8_t, uint64_t

from bookie._fast.base.types cimport Status

cdef enum:
    COMMIT_KEY_BYTES = 6
    COMMIT_VALUE_BYTES = 44
    COMMIT_SUMS = 3              # of ledgers, fences and doubts

cdef struct CommitValue:
    uint64_t number
    bint summed                  # False: written by a version without sums
    uint64_t[COMMIT_SUMS] sums
    int64_t begun_ns             # wall clock when it was begun; 0: written by a version without it

cdef const char* COMMIT_KEY

cdef void commit_pack(const CommitValue* commit, uint8_t* value) noexcept nogil
# Return OK or CORRUPT.
cdef Status commit_unpack(const void* value, size_t size, CommitValue* commit) noexcept nogil
# Return what a stored value adds to the sum of its table.
cdef uint64_t commit_share(const void* value, size_t size) noexcept nogil
