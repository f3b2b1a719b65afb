"""An eventfd that wakes a thread once for many completions: it is written only if no wake-up is pending.

Any thread may wake the owner.
"""
from libc.stdint cimport int64_t, uint64_t

from bookie._fast.base.sync cimport bk_exchange

cdef extern from "<sys/eventfd.h>" nogil:
    int eventfd(unsigned int initial, int flags) noexcept
    int EFD_NONBLOCK
    int EFD_CLOEXEC

cdef extern from "<unistd.h>" nogil:
    ssize_t waker_write "write"(int, const void*, size_t) noexcept
    ssize_t waker_read "read"(int, void*, size_t) noexcept

cdef struct Waker:
    int fd
    int64_t notified         # 1 between a wake and the owner's `waker_clear`
    int64_t waiting          # atomic; 1 while the owner has responses that wait for a journal group to be synced
    int64_t waiting_written  # atomic; 1 while it has responses that wait for a group to be written

cdef inline bint waker_init(Waker* waker) noexcept nogil:
    waker.notified = 0
    waker.waiting = 0
    waker.waiting_written = 0
    waker.fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)
    return waker.fd >= 0

cdef inline void waker_wake(Waker* waker) noexcept nogil:
    cdef uint64_t one = 1
    if bk_exchange(&waker.notified, 1) == 0:
        waker_write(waker.fd, &one, sizeof(one))

cdef inline void waker_clear(Waker* waker) noexcept nogil:
    """Clear the wake-up. Call this before looking at completions, so that none is missed: a thread that found
    `notified` set came before this exchange, which makes its completion visible; a later thread finds it cleared and
    writes again.
    """
    cdef uint64_t drained
    waker_read(waker.fd, &drained, sizeof(drained))
    bk_exchange(&waker.notified, 0)
