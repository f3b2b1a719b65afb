"""A bytes-per-second limit for background work that can be changed, paused and stopped while somebody waits in it."""
from libc.stdint cimport int64_t

from bookie._fast.base.sync cimport pthread_cond_t, pthread_mutex_t

cdef struct Pace:
    pthread_mutex_t lock     # guards what follows
    pthread_cond_t changed
    int64_t rate             # bytes a second; 0 unlimited
    double credit            # bytes that may go now; below 0: how far ahead the work is
    int64_t counted_at       # monotonic, when `credit` was last brought up
    bint paused
    bint stopped

cdef void pace_init(Pace* pace) noexcept nogil
cdef void pace_destroy(Pace* pace) noexcept nogil
# Wait until `bytes` more may be moved. A tenth of a second's worth may go at once after a rest. False: stopped.
cdef bint pace_take(Pace* pace, int64_t bytes) noexcept nogil
# Any thread; a waiting one goes by the new rate at once.
cdef void pace_set_rate(Pace* pace, int64_t rate) noexcept nogil
cdef void pace_pause(Pace* pace, bint paused) noexcept nogil
# For good.
cdef void pace_stop(Pace* pace) noexcept nogil

cdef class Pacer:
    # One limit, for what Python hands to a scan.
    cdef Pace pace
