"""A limit in bytes per second for background work. It can be changed, paused and stopped while a thread waits in it.
"""
from libc.stdint cimport int64_t

from bookie._fast.base.sync cimport pthread_cond_t, pthread_mutex_t

cdef struct Pace:
    pthread_mutex_t lock     # guards the fields below
    pthread_cond_t changed
    int64_t rate             # bytes per second; 0 for no limit
    double credit            # bytes that may be moved now; negative if the work is ahead of the rate
    int64_t counted_at       # monotonic time, in nanoseconds, at which `credit` was last updated
    bint paused
    bint stopped

cdef void pace_init(Pace* pace) noexcept nogil
cdef void pace_destroy(Pace* pace) noexcept nogil
# Wait until `bytes` more may be moved. After idle time, a tenth of a second's worth may be moved at once. Return False
# if the pace was stopped.
cdef bint pace_take(Pace* pace, int64_t bytes) noexcept nogil
# Change the rate, in bytes per second, from any thread; a waiting thread follows the new rate at once.
cdef void pace_set_rate(Pace* pace, int64_t rate) noexcept nogil
# Make threads that call pace_take wait until the pause ends.
cdef void pace_pause(Pace* pace, bint paused) noexcept nogil
# Let every pace_take, present and future, return False.
cdef void pace_stop(Pace* pace) noexcept nogil

cdef class Pacer:
    # A limit that Python creates and passes to scans.
    cdef Pace pace
