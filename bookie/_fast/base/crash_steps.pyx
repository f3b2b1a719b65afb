"""The step after which this process ends, and the step at which threads are held, for tests."""
from libc.stdint cimport int64_t

from bookie._fast.base.sync cimport (
    bk_load,
    bk_store,
    cond_init,
    cond_wait_until,
    now_ns,
    pthread_cond_broadcast,
    pthread_cond_t,
    pthread_cond_wait,
    pthread_mutex_init,
    pthread_mutex_lock,
    pthread_mutex_t,
    pthread_mutex_unlock,
)

cdef extern from "<stdlib.h>" nogil:
    void abort() noexcept

cdef int64_t step_to_stop = 0
cdef int64_t step_to_hold = 0
cdef int64_t held = 0            # number of threads that are held now
cdef pthread_mutex_t lock        # guards `held`
cdef pthread_cond_t changed      # a thread is held now, or held threads may go on

pthread_mutex_init(&lock, NULL)
cond_init(&changed)


cdef void hold(int64_t reached) noexcept nogil:
    global held
    pthread_mutex_lock(&lock)
    held += 1
    pthread_cond_broadcast(&changed)
    while bk_load(&step_to_hold) == reached:
        pthread_cond_wait(&changed, &lock)
    held -= 1
    pthread_mutex_unlock(&lock)


cdef void step(int64_t reached) noexcept nogil:
    if bk_load(&step_to_stop) == reached:
        abort()
    if bk_load(&step_to_hold) == reached:
        hold(reached)


def crash_after_step(number: int) -> None:
    """Abort the process the next time it reaches step `number`; 0 for never."""
    bk_store(&step_to_stop, number)


def hold_at_step(number: int) -> None:
    """Hold every thread that reaches step `number` until the next call; 0 releases held threads and holds no more."""
    cdef int64_t wanted = number
    with nogil:
        pthread_mutex_lock(&lock)
        bk_store(&step_to_hold, wanted)
        pthread_cond_broadcast(&changed)
        pthread_mutex_unlock(&lock)


def wait_held(double timeout_s) -> bool:
    """Wait until a thread is held at the step; return False after `timeout_s` seconds."""
    cdef int64_t deadline = now_ns() + <int64_t> (timeout_s * 1e9)
    cdef bint seen
    with nogil:
        pthread_mutex_lock(&lock)
        while held == 0:
            if cond_wait_until(&changed, &lock, deadline):
                break
        seen = held > 0
        pthread_mutex_unlock(&lock)
    return seen
