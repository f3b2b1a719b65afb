"""CRC32C (Castagnoli) and CRC32 (IEEE). Pass 0 to start, or an earlier result to continue. Any thread."""
from libc.stdint cimport uint32_t

cdef uint32_t crc32c(uint32_t crc, const void* data, size_t size) noexcept nogil
cdef uint32_t crc32(uint32_t crc, const void* data, size_t size) noexcept nogil
