"""Reads at known offsets of entry logs, through a bounded cache of descriptors. Any thread."""
from libc.stdint cimport uint32_t, uint64_t

from bookie._fast.base.file cimport FileOps
from bookie._fast.base.types cimport Status

cdef struct EntryLogReaders      # opaque

# Create readers for `directory` with at most `open_max` descriptors. NULL if there is no memory or the path is too
# long.
cdef EntryLogReaders* readers_new(FileOps* ops, const char* directory, int open_max) noexcept nogil
# Free them. No read is in progress.
cdef void readers_free(EntryLogReaders* readers) noexcept nogil
# Read `size` bytes at `offset` of log `log_id` into `buffer`; *got is less only at the end of the file. Return OK,
# IO_ERROR, or CLOSED if the file does not exist (any more). The kernel is asked to read `ahead` more bytes in the
# background. If all descriptors are in use, the call waits for one.
cdef Status readers_read(EntryLogReaders* readers, uint32_t log_id, uint64_t offset, void* buffer, size_t size,
                         size_t* got, size_t ahead) noexcept nogil
# Drop the descriptor of a deleted log; reads in progress finish on it.
cdef void readers_forget(EntryLogReaders* readers, uint32_t log_id) noexcept nogil
