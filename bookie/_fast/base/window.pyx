"""A sliding window over a file: opening, and the slow path that reads."""

from libc.errno cimport EINTR, EINVAL
from libc.stdint cimport UINT64_MAX, uint8_t, uint64_t
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memcpy, memmove
from posix.types cimport off_t

from bookie._fast.base.file cimport Files, set_direct
from bookie._fast.base.open_file cimport open_to_read
from bookie._fast.base.pace cimport pace_take
from bookie._fast.base.types cimport Status

cdef extern from "<errno.h>" nogil:
    int ECANCELED

cdef extern from "<fcntl.h>" nogil:
    int POSIX_FADV_DONTNEED
    int posix_fadvise(int fd, off_t offset, off_t size, int advice) noexcept

cdef extern from "<stdlib.h>" nogil:
    int posix_memalign(void** data, size_t alignment, size_t size) noexcept

cdef enum:
    BLOCK = 4096                 # alignment of direct I/O


cdef Status window_open(Window* window, FileOps* ops, int fd, size_t capacity_max) noexcept nogil:
    window.ops = ops
    window.fd = fd
    window.base = 0
    window.size = 0
    window.capacity = WINDOW_CHUNK
    window.capacity_max = capacity_max if capacity_max > WINDOW_CHUNK else WINDOW_CHUNK
    window.file_end = UINT64_MAX
    window.pace = NULL
    window.bounce = NULL
    window.direct = False
    window.data = <uint8_t*> malloc(window.capacity)
    return Status.OK if window.data != NULL else Status.NO_MEMORY


cdef Status window_pace(Window* window, Pace* pace) noexcept nogil:
    cdef void* bounce = NULL
    if posix_memalign(&bounce, BLOCK, WINDOW_PACED) != 0:
        return Status.NO_MEMORY
    window.bounce = <uint8_t*> bounce
    window.pace = pace
    window.direct = set_direct(window.fd, True)
    return Status.OK


cdef void window_close(Window* window) noexcept nogil:
    free(window.data)
    free(window.bounce)
    window.data = window.bounce = NULL


cdef ssize_t read_paced(Window* window, uint64_t at) noexcept nogil:
    """Read the bytes from `at` on, behind those that the window holds. Return their number, 0 at the end of the file,
    or -errno.
    """
    cdef uint64_t start = at - at % BLOCK
    cdef size_t room = window.capacity - window.size
    cdef ssize_t n = -EINVAL
    if not pace_take(window.pace, WINDOW_PACED):
        return -ECANCELED
    if window.direct:
        n = window.ops.pread(window.fd, window.bounce, WINDOW_PACED, start)
        if n == -EINVAL:
            set_direct(window.fd, False)             # the device has larger blocks
            window.direct = False
    if not window.direct:
        n = window.ops.pread(window.fd, window.bounce, WINDOW_PACED, start)
        posix_fadvise(window.fd, start, WINDOW_PACED, POSIX_FADV_DONTNEED)
    if n < 0:
        return n
    if <uint64_t> n <= at - start:
        return 0
    n -= <ssize_t> (at - start)
    if <size_t> n > room:
        n = <ssize_t> room
    memcpy(window.data + window.size, window.bounce + (at - start), n)
    return n


cdef void drop_before(Window* window, uint64_t keep) noexcept nogil:
    cdef size_t held = 0
    if keep >= window.base and keep - window.base < window.size:
        held = window.size - (keep - window.base)
        if keep > window.base:
            memmove(window.data, window_at(window, keep), held)
    window.base = keep
    window.size = held


cdef Status make_room(Window* window) noexcept nogil:
    """Double the capacity of a window that is full of bytes from the file."""
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
        if window.bounce == NULL:
            n = window.ops.pread(window.fd, window.data + window.size, window.capacity - window.size, at)
        else:
            n = read_paced(window, at)
        if n == -EINTR:
            continue
        if n == -ECANCELED:
            return Status.CLOSED
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
    """Load each (keep, position, size) from one file, and return (status, bytes from `keep` on, bytes got) for each.
    """
    files = files if files is not None else Files()
    cdef Window window
    cdef Status status
    cdef size_t got
    cdef uint64_t keep, pos
    cdef int fd = open_to_read(files.ops, path)
    answers = []
    if window_open(&window, files.ops, fd, capacity_max) == Status.OK:
        for keep, pos, size in pieces:
            status = window_load(&window, keep, pos, size, &got)
            held = <bytes> (<char*> window_at(&window, keep))[: pos - keep + got if got > 0 else 0]
            answers.append((<int> status, held, got))
    window_close(&window)
    files.ops.close(fd)
    return answers
