"""Records of one entry log and where they lie, sorted by ledger and entry: what a rebuild of the index works on.

Memory is the caller's. Any thread.
"""
from libc.stddef cimport size_t
from libc.stdint cimport int64_t, uint32_t

cdef struct Located:
    int64_t ledger               # >= 0, as is `entry`
    int64_t entry
    uint32_t offset              # of the length word
    uint32_t length              # entry bytes, without the prefix

# Sort rows[count] by (ledger, entry); equal ones keep their order. `spare` has as much room. Answers where the sorted
# rows are: `rows` or `spare`.
cdef Located* located_sort(Located* rows, Located* spare, size_t count) noexcept nogil
