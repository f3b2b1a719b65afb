"""A stack of descriptors of /dev/null under one lock, which is never held during slow operations."""
import os
import resource

from libc.stdint cimport int64_t
from posix.fcntl cimport F_DUPFD_CLOEXEC, fcntl

from bookie._fast.base.sync cimport (
    bk_load,
    bk_store,
    pthread_mutex_init,
    pthread_mutex_lock,
    pthread_mutex_t,
    pthread_mutex_unlock,
)

cdef extern from "<unistd.h>" nogil:
    int c_close "close"(int) noexcept
    int dup3(int, int, int) noexcept

cdef extern from "<fcntl.h>" nogil:
    int O_CLOEXEC

cdef enum:
    SPARES_MOST = 4096
    SELECTABLE = 1024

cdef struct Spares:
    pthread_mutex_t lock
    int source               # every spare is a copy of this descriptor; -1 before `keep`
    int above                # spares have higher numbers, which leaves low ones to callers of select(2)
    int fds[SPARES_MOST]
    int64_t wanted
    int64_t count            # atomic; written with the lock

cdef Spares spares
pthread_mutex_init(&spares.lock, NULL)
spares.source = -1


cdef bint spare_give_up() noexcept nogil:
    cdef int fd = -1
    pthread_mutex_lock(&spares.lock)
    if spares.count:
        bk_store(&spares.count, spares.count - 1)
        fd = spares.fds[spares.count]
    pthread_mutex_unlock(&spares.lock)
    return fd >= 0 and c_close(fd) == 0


cdef bint spare_become(int fd) noexcept nogil:
    cdef bint become = False
    if bk_load(&spares.count) >= bk_load(&spares.wanted):
        return False
    pthread_mutex_lock(&spares.lock)
    if spares.count < spares.wanted and dup3(spares.source, fd, O_CLOEXEC) == fd:
        spares.fds[spares.count] = fd
        bk_store(&spares.count, spares.count + 1)
        become = True
    pthread_mutex_unlock(&spares.lock)
    return become


cdef void spares_fill() noexcept nogil:
    cdef int fd
    if bk_load(&spares.count) >= bk_load(&spares.wanted):
        return
    pthread_mutex_lock(&spares.lock)
    while spares.count < spares.wanted:
        fd = fcntl(spares.source, F_DUPFD_CLOEXEC, spares.above)
        if fd < 0:
            break
        spares.fds[spares.count] = fd
        bk_store(&spares.count, spares.count + 1)
    pthread_mutex_unlock(&spares.lock)


def keep(count: int) -> int:
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    spares.above = max(0, min(limit - count, SELECTABLE))
    if spares.source < 0:
        spares.source = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    pthread_mutex_lock(&spares.lock)
    bk_store(&spares.wanted, min(max(count, spares.count), SPARES_MOST))
    pthread_mutex_unlock(&spares.lock)
    spares_fill()
    return bk_load(&spares.count)


def kept() -> int:
    return bk_load(&spares.count)
