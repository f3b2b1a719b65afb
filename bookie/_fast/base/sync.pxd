"""Locks, conditions, atomics and clocks for `nogil` code."""
from libc.stdint cimport int64_t, uint64_t
from posix.time cimport CLOCK_MONOTONIC, CLOCK_REALTIME, clock_gettime, timespec

cdef extern from "<pthread.h>" nogil:
    ctypedef struct pthread_mutex_t:
        pass
    ctypedef struct pthread_cond_t:
        pass
    ctypedef struct pthread_condattr_t:
        pass
    int pthread_mutex_init(pthread_mutex_t*, void*) noexcept
    int pthread_mutex_destroy(pthread_mutex_t*) noexcept
    int pthread_mutex_lock(pthread_mutex_t*) noexcept
    int pthread_mutex_trylock(pthread_mutex_t*) noexcept
    int pthread_mutex_unlock(pthread_mutex_t*) noexcept
    int pthread_condattr_init(pthread_condattr_t*) noexcept
    int pthread_condattr_setclock(pthread_condattr_t*, int) noexcept
    int pthread_cond_init(pthread_cond_t*, pthread_condattr_t*) noexcept
    int pthread_cond_destroy(pthread_cond_t*) noexcept
    int pthread_cond_wait(pthread_cond_t*, pthread_mutex_t*) noexcept
    int pthread_cond_timedwait(pthread_cond_t*, pthread_mutex_t*, const timespec*) noexcept
    int pthread_cond_signal(pthread_cond_t*) noexcept
    int pthread_cond_broadcast(pthread_cond_t*) noexcept

cdef extern from "csrc/atomics.h" nogil:
    int64_t bk_load(const int64_t*) noexcept
    void bk_store(int64_t*, int64_t) noexcept
    uint64_t bk_load_u64 "bk_load"(const uint64_t*) noexcept
    void bk_store_u64 "bk_store"(uint64_t*, uint64_t) noexcept
    void* bk_load_pointer "bk_load"(void**) noexcept
    void bk_store_pointer "bk_store"(void**, void*) noexcept
    void bk_count(int64_t*, int64_t) noexcept      # adds to a counter that one thread writes and any thread reads
    int64_t bk_add(int64_t*, int64_t) noexcept
    int64_t bk_add_relaxed(int64_t*, int64_t) noexcept
    int64_t bk_exchange(int64_t*, int64_t) noexcept
    void bk_fence() noexcept

cdef inline int64_t now_ns() noexcept nogil:
    """Return the monotonic clock in nanoseconds."""
    cdef timespec t
    clock_gettime(CLOCK_MONOTONIC, &t)
    return <int64_t> t.tv_sec * 1000000000 + t.tv_nsec

cdef inline int64_t wall_ns() noexcept nogil:
    """Return the wall clock in nanoseconds since 1970."""
    cdef timespec t
    clock_gettime(CLOCK_REALTIME, &t)
    return <int64_t> t.tv_sec * 1000000000 + t.tv_nsec

cdef inline int64_t wall_ms() noexcept nogil:
    """Return the wall clock in milliseconds since 1970."""
    return wall_ns() // 1000000

cdef inline void cond_init(pthread_cond_t* cond) noexcept nogil:
    """Initialise a condition whose timed waits use the monotonic clock."""
    cdef pthread_condattr_t attr
    pthread_condattr_init(&attr)
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC)
    pthread_cond_init(cond, &attr)

cdef inline int cond_wait_until(pthread_cond_t* cond, pthread_mutex_t* mutex, int64_t deadline_ns) noexcept nogil:
    """Wait until signalled or until `deadline_ns` on the monotonic clock; return non-zero after a timeout."""
    cdef timespec t
    t.tv_sec = deadline_ns // 1000000000
    t.tv_nsec = deadline_ns % 1000000000
    return pthread_cond_timedwait(cond, mutex, &t)
