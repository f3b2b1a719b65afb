"""Opening a location index: the file is checked before LMDB trusts it, and tables that are missing are created."""
from libc.stdint cimport uint64_t

from bookie._fast.index.state cimport LocationIndex

# Open or create the index in the existing directory `path`, once per process. Return NULL with *error set to an errno
# or an LMDB code (index_error_text describes both). `map_bytes` is address space: when the file has grown to it, one
# transaction fails with NO_SPACE, and the next begins with twice as much once no read is in progress.
cdef LocationIndex* index_open(const char* path, uint64_t map_bytes, int* error) noexcept nogil
# Close the index after every reader was freed. An open transaction is aborted.
cdef void index_close(LocationIndex* index) noexcept nogil
