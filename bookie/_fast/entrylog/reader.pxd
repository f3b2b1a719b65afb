"""Reads at known places of entry logs, through a bounded cache of descriptors. Thread-safe."""
from libc.stdint cimport uint32_t, uint64_t

from bookie._fast.base.file cimport FileOps
from bookie._fast.base.types cimport Status

cdef struct EntryLogReaders      # opaque

# NULL without memory, or with a path that is too long.
cdef EntryLogReaders* elog_readers(FileOps* ops, const char* directory, int open_max) noexcept nogil
# No read may be under way.
cdef void elog_readers_free(EntryLogReaders* readers) noexcept nogil
# Read `size` bytes at `offset` of log `log_id` into `buffer`; *got is less only at the end of the file. OK, IO_ERROR,
# or CLOSED: there is no such file (any more). Asks the kernel to read `ahead` bytes beyond in the background.
# Descriptors in use at once never exceed `open_max`: a reader that finds all of them busy waits for one.
cdef Status elog_read(EntryLogReaders* readers, uint32_t log_id, uint64_t offset, void* buffer, size_t size,
                      size_t* got, size_t ahead) noexcept nogil
# Forget the descriptor of a deleted log; reads under way finish on it.
cdef void elog_forget(EntryLogReaders* readers, uint32_t log_id) noexcept nogil
