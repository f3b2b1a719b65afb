"""`lastMark` files: up to where each journal is in the entry logs. In every ledger directory, named as upstream's."""
from libc.stdint cimport int64_t, uint64_t

from bookie._fast.stores cimport Stores
from bookie._fast.types cimport Status

# Write each journal's mark, file id and offset, durably into every ledger directory. OK, NO_SPACE (noted in the store
# that had none) or IO_ERROR; a mark that was not written is the old one.
cdef Status marks_write(Stores* stores, const int64_t* ids, const uint64_t* offsets) noexcept nogil
