"""A sliding window over a file, for scans: large reads, one buffer that grows only with bytes that really arrived.

One thread at a time; the scan that opened it owns it and closes it. Pointers into it are valid until the next load.
"""
from libc.stdint cimport uint8_t, uint64_t
from libc.string cimport memcmp

from bookie._fast.base.file cimport FileOps
from bookie._fast.base.pace cimport Pace
from bookie._fast.base.types cimport Status

cdef enum:
    WINDOW_CHUNK = 0x400000      # 4 MiB: what one pread asks for at least
    WINDOW_PACED = 0x80000       # 512 KiB: what one pread of a paced window asks for

cdef struct Window:
    FileOps* ops
    int fd
    uint8_t* data                # the byte of the file at `base`
    uint64_t base
    size_t size                  # bytes held
    size_t capacity
    size_t capacity_max
    uint64_t file_end            # where a read found the end of the file; UINT64_MAX until then
    Pace* pace                   # NULL: as fast as the disk
    uint8_t* bounce              # of a paced window: what direct I/O reads into
    bint direct                  # it goes past the page cache

# NO_MEMORY or OK. The window never holds more than `capacity_max` bytes (and at least one chunk).
cdef Status window_open(Window* window, FileOps* ops, int fd, size_t capacity_max) noexcept nogil
# From now on each read asks `pace` first, and leaves nothing in the page cache; window_load answers CLOSED once the
# pace is stopped. NO_MEMORY or OK.
cdef Status window_pace(Window* window, Pace* pace) noexcept nogil
cdef void window_close(Window* window) noexcept nogil
# The slow half of window_load: reads.
cdef Status window_read(Window* window, uint64_t keep, uint64_t pos, size_t size, size_t* got) noexcept nogil

cdef inline Status window_load(Window* window, uint64_t keep, uint64_t pos, size_t size, size_t* got) noexcept nogil:
    """Hold the `size` bytes at `pos`, and everything from `keep` (<= pos) on; *got is less only at the end of the file.

    FULL when keep..pos+size is more than the window may hold, IO_ERROR, NO_MEMORY, CLOSED.
    """
    if keep >= window.base and pos - window.base <= window.size and size <= window.size - (pos - window.base):
        got[0] = size
        return Status.OK
    return window_read(window, keep, pos, size, got)

cdef inline uint8_t* window_at(Window* window, uint64_t pos) noexcept nogil:
    return window.data + (pos - window.base)

cdef inline bint all_zeros(const uint8_t* data, size_t size) noexcept nogil:
    return size == 0 or (data[0] == 0 and memcmp(data, data + 1, size - 1) == 0)
