"""A sliding window over a file, for scans. See the contract; this file holds the reading half."""
import os

from libc.errno cimport EINTR
from libc.stdint cimport UINT64_MAX, uint64_t
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memmove
from posix.fcntl cimport O_RDONLY

from bookie._fast.file cimport Files
from bookie._fast.types cimport Status


cdef Status window_open(Window* window, FileOps* ops, int fd, size_t capacity_max) noexcept nogil:
    window.ops = ops
    window.fd = fd
    window.base = 0
    window.size = 0
    window.capacity = WINDOW_CHUNK
    window.capacity_max = capacity_max if capacity_max > WINDOW_CHUNK else WINDOW_CHUNK
    window.file_end = UINT64_MAX
    window.data = <uint8_t*> malloc(window.capacity)
    return Status.OK if window.data != NULL else Status.NO_MEMORY


cdef void window_close(Window* window) noexcept nogil:
    free(window.data)
    window.data = NULL


cdef void drop_before(Window* window, uint64_t keep) noexcept nogil:
    cdef size_t held = 0
    if keep >= window.base and keep - window.base < window.size:
        held = window.size - (keep - window.base)
        if keep > window.base:
            memmove(window.data, window_at(window, keep), held)
    window.base = keep
    window.size = held


cdef Status make_room(Window* window) noexcept nogil:
    """Double a window that is full of bytes which the file really holds."""
    cdef size_t capacity
    cdef uint8_t* data
    if window.size < window.capacity:
        return Status.OK
    if window.capacity >= window.capacity_max:
        return Status.FULL
    capacity = window.capacity * 2
    if capacity > window.capacity_max:
        capacity = window.capacity_max
    data = <uint8_t*> realloc(window.data, capacity)
    if data == NULL:
        return Status.NO_MEMORY
    window.data = data
    window.capacity = capacity
    return Status.OK


cdef Status window_read(Window* window, uint64_t keep, uint64_t pos, size_t size, size_t* got) noexcept nogil:
    cdef uint64_t wanted = pos - keep + size
    cdef uint64_t at
    cdef ssize_t n
    cdef Status status
    got[0] = 0
    if wanted > window.capacity_max:
        return Status.FULL
    drop_before(window, keep)
    while window.size < wanted:
        at = window.base + window.size
        if at >= window.file_end:
            break
        status = make_room(window)
        if status != Status.OK:
            return status
        n = window.ops.pread(window.fd, window.data + window.size, window.capacity - window.size, at)
        if n == -EINTR:
            continue
        if n < 0:
            return Status.IO_ERROR
        if n == 0:
            window.file_end = at
        window.size += n
    if window.size > pos - keep:
        wanted = window.size - (pos - keep)
        got[0] = size if size < wanted else <size_t> wanted
    return Status.OK


def read_pieces(path, pieces, size_t capacity_max=WINDOW_CHUNK, Files files=None):
    """Load each (keep, position, size) in turn from one file: (status, bytes from `keep` on, bytes got) a piece."""
    files = files if files is not None else Files()
    cdef Window window
    cdef Status status
    cdef size_t got
    cdef uint64_t keep, pos
    encoded = os.fsencode(path)
    cdef const char* name = encoded
    cdef int fd = files.ops.open(name, O_RDONLY, 0)
    if fd < 0:
        raise OSError(-fd, os.strerror(-fd), str(path))
    answers = []
    if window_open(&window, files.ops, fd, capacity_max) == Status.OK:
        for keep, pos, size in pieces:
            status = window_load(&window, keep, pos, size, &got)
            held = <bytes> (<char*> window_at(&window, keep))[: pos - keep + got if got > 0 else 0]
            answers.append((<int> status, held, got))
    window_close(&window)
    files.ops.close(fd)
    return answers
