"""fdatasync_many by the system calls of io_submit(2), which libc does not wrap."""
from libc.errno cimport EINTR, EIO, errno
from libc.stdint cimport int64_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memset

from bookie._fast.base.sync cimport pthread_mutex_init, pthread_mutex_lock, pthread_mutex_t, pthread_mutex_unlock

cdef extern from "<linux/aio_abi.h>" nogil:
    ctypedef unsigned long aio_context_t
    int IOCB_CMD_FDSYNC
    cdef struct iocb:
        uint64_t aio_data
        uint16_t aio_lio_opcode
        uint32_t aio_fildes
    cdef struct io_event:
        uint64_t data
        int64_t res

cdef extern from "<sys/syscall.h>" nogil:
    long SYS_io_setup
    long SYS_io_destroy
    long SYS_io_submit
    long SYS_io_getevents

cdef extern from "<unistd.h>" nogil:
    long syscall(long number, ...) noexcept
    int fdatasync(int fd) noexcept

cdef enum:
    CONTEXTS_MOST = 64

cdef struct Contexts:
    # Each serves one call at a time, because its completions carry no caller. A call takes one that is idle or makes
    # one, and leaves it for the next call, until the process ends.
    pthread_mutex_t lock         # never held while the disk works
    aio_context_t idle[CONTEXTS_MOST]
    int count                    # of idle ones

cdef Contexts contexts
pthread_mutex_init(&contexts.lock, NULL)


cdef aio_context_t take_context() noexcept nogil:
    """Return a context that no other call uses, or 0 if the kernel allows no further one."""
    cdef aio_context_t context = 0
    pthread_mutex_lock(&contexts.lock)
    if contexts.count:
        contexts.count -= 1
        context = contexts.idle[contexts.count]
    pthread_mutex_unlock(&contexts.lock)
    if context == 0 and syscall(SYS_io_setup, <long> SYNCS_MOST, &context) != 0:
        return 0
    return context


cdef void leave_context(aio_context_t context) noexcept nogil:
    """Keep a context for the next call; the kernel has completed everything that was submitted to it."""
    cdef bint kept = False
    pthread_mutex_lock(&contexts.lock)
    if contexts.count < CONTEXTS_MOST:
        contexts.idle[contexts.count] = context
        contexts.count += 1
        kept = True
    pthread_mutex_unlock(&contexts.lock)
    if not kept:
        syscall(SYS_io_destroy, context)


cdef int submit(aio_context_t context, const int* fds, int count) noexcept nogil:
    """Submit a sync for each file, and return how many the kernel accepted."""
    cdef iocb requests[SYNCS_MOST]
    cdef iocb* list[SYNCS_MOST]
    cdef int taken = 0
    cdef long n = 1
    cdef int i
    memset(requests, 0, sizeof(requests))
    for i in range(count):
        requests[i].aio_data = <uint64_t> i
        requests[i].aio_lio_opcode = <uint16_t> IOCB_CMD_FDSYNC
        requests[i].aio_fildes = <uint32_t> fds[i]
        list[i] = &requests[i]
    while taken < count and n > 0:
        n = syscall(SYS_io_submit, context, <long> (count - taken), &list[taken])
        if n > 0:
            taken += <int> n
    return taken


cdef bint await_all(aio_context_t context, int* results, int count) noexcept nogil:
    """Wait for `count` completions. Return False if some may still come: a sync without a result counts as failed."""
    cdef io_event events[SYNCS_MOST]
    cdef int i
    cdef long n
    while count > 0:
        n = syscall(SYS_io_getevents, context, <long> count, <long> count, events, NULL)
        if n < 0 and errno != EINTR:
            return False
        for i in range(<int> n):
            results[events[i].data] = <int> events[i].res
            count -= 1
    return True


cdef void sync_many(const int* fds, int* results, int count) noexcept nogil:
    cdef aio_context_t context = take_context() if count > 1 else 0
    cdef int taken = 0
    cdef int i
    for i in range(count):
        results[i] = -EIO
    if context != 0:
        taken = submit(context, fds, count)
        if await_all(context, results, taken):
            leave_context(context)
    for i in range(taken, count):
        results[i] = 0 if fdatasync(fds[i]) == 0 else -errno
