"""A sliding window over a file, for scans: large reads into one buffer that grows only with bytes actually read.

One thread at a time. The scan that opened a window owns it and closes it. Pointers into it are valid until the next
window_load.
"""
from libc.stdint cimport uint8_t, uint64_t
from libc.string cimport memcmp

from bookie._fast.base.file cimport FileOps
from bookie._fast.base.pace cimport Pace
from bookie._fast.base.types cimport Status

cdef enum:
    WINDOW_CHUNK = 0x400000      # 4 MiB: the minimum that one pread asks for
    WINDOW_PACED = 0x80000       # 512 KiB: what one pread of a paced window asks for

cdef struct Window:
    FileOps* ops
    int fd
    uint8_t* data                # the bytes of the file from `base` on
    uint64_t base
    size_t size                  # bytes held
    size_t capacity
    size_t capacity_max
    uint64_t file_end            # the end of the file once a read has found it; UINT64_MAX until then
    Pace* pace                   # NULL for no limit
    uint8_t* bounce              # aligned buffer for direct I/O of a paced window
    bint direct                  # reads bypass the page cache

# Open a window on `fd` that holds at most `capacity_max` bytes, and at least one chunk. Return OK or NO_MEMORY.
cdef Status window_open(Window* window, FileOps* ops, int fd, size_t capacity_max) noexcept nogil
# Make each further read wait for `pace` first and leave nothing in the page cache. Once the pace is stopped,
# window_load returns CLOSED. Return OK or NO_MEMORY.
cdef Status window_pace(Window* window, Pace* pace) noexcept nogil
cdef void window_close(Window* window) noexcept nogil
# The slow path of window_load, which reads from the file.
cdef Status window_read(Window* window, uint64_t keep, uint64_t pos, size_t size, size_t* got) noexcept nogil

cdef inline Status window_load(Window* window, uint64_t keep, uint64_t pos, size_t size, size_t* got) noexcept nogil:
    """Load the `size` bytes at `pos`, and keep everything from `keep` (<= pos) on. *got is less only at the end of
    the file.

    Return OK, FULL if keep..pos+size exceeds the capacity, IO_ERROR, NO_MEMORY or CLOSED.
    """
    if keep >= window.base and pos - window.base <= window.size and size <= window.size - (pos - window.base):
        got[0] = size
        return Status.OK
    return window_read(window, keep, pos, size, got)

cdef inline uint8_t* window_at(Window* window, uint64_t pos) noexcept nogil:
    return window.data + (pos - window.base)

cdef inline bint all_zeros(const uint8_t* data, size_t size) noexcept nogil:
    return size == 0 or (data[0] == 0 and memcmp(data, data + 1, size - 1) == 0)
