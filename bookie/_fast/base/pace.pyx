"""A token bucket on the monotonic clock. Threads wait on a condition, so that changes take effect at once."""
from libc.stdint cimport int64_t

from bookie._fast.base.sync cimport (
    cond_init,
    cond_wait_until,
    now_ns,
    pthread_cond_broadcast,
    pthread_cond_destroy,
    pthread_cond_wait,
    pthread_mutex_destroy,
    pthread_mutex_init,
    pthread_mutex_lock,
    pthread_mutex_unlock,
)

cdef enum:
    SECOND_NS = 1000000000
    BURST = 10               # unused time saves up credit for at most a tenth of a second


cdef void pace_init(Pace* pace) noexcept nogil:
    pthread_mutex_init(&pace.lock, NULL)
    cond_init(&pace.changed)
    pace.rate = 0
    pace.credit = 0
    pace.counted_at = now_ns()
    pace.paused = False
    pace.stopped = False


cdef void pace_destroy(Pace* pace) noexcept nogil:
    pthread_mutex_destroy(&pace.lock)
    pthread_cond_destroy(&pace.changed)


cdef void bring_up(Pace* pace, int64_t now) noexcept nogil:
    """Add the credit earned since the last update. The caller holds the lock."""
    cdef double most = <double> pace.rate / BURST
    pace.credit += <double> pace.rate * <double> (now - pace.counted_at) / SECOND_NS
    if pace.credit > most:
        pace.credit = most
    pace.counted_at = now


cdef bint pace_take(Pace* pace, int64_t bytes) noexcept nogil:
    cdef int64_t now
    cdef bint go
    pthread_mutex_lock(&pace.lock)
    while not pace.stopped:
        if pace.paused:
            pthread_cond_wait(&pace.changed, &pace.lock)
            continue
        if pace.rate == 0:
            pace.credit = 0
            break
        now = now_ns()
        bring_up(pace, now)
        if pace.credit >= 0:
            pace.credit -= bytes
            break
        cond_wait_until(&pace.changed, &pace.lock, now + <int64_t> (-pace.credit / pace.rate * SECOND_NS) + 1)
    go = not pace.stopped
    pthread_mutex_unlock(&pace.lock)
    return go


cdef void pace_set_rate(Pace* pace, int64_t rate) noexcept nogil:
    pthread_mutex_lock(&pace.lock)
    bring_up(pace, now_ns())
    if rate == 0 or pace.rate == 0:
        pace.credit = 0
    pace.rate = rate
    pthread_cond_broadcast(&pace.changed)
    pthread_mutex_unlock(&pace.lock)


cdef void pace_pause(Pace* pace, bint paused) noexcept nogil:
    pthread_mutex_lock(&pace.lock)
    pace.paused = paused
    pthread_cond_broadcast(&pace.changed)
    pthread_mutex_unlock(&pace.lock)


cdef void pace_stop(Pace* pace) noexcept nogil:
    pthread_mutex_lock(&pace.lock)
    pace.stopped = True
    pthread_cond_broadcast(&pace.changed)
    pthread_mutex_unlock(&pace.lock)


cdef class Pacer:
    """A limit in bytes per second for background work that Python starts. Any thread."""

    def __cinit__(self, int64_t rate=0):
        pace_init(&self.pace)
        self.pace.rate = rate

    def take(self, int64_t size):
        """Wait until `size` bytes may be moved; return False if the pacer was stopped."""
        cdef bint go
        with nogil:
            go = pace_take(&self.pace, size)
        return go

    def set_rate(self, int64_t rate):
        pace_set_rate(&self.pace, rate)

    def pause(self, bint paused):
        pace_pause(&self.pace, paused)

    def stop(self):
        pace_stop(&self.pace)

    @property
    def rate(self):
        """Bytes per second; 0 for no limit."""
        return self.pace.rate

    @property
    def paused(self):
        """Whether `take` waits until `pause(False)`."""
        return bool(self.pace.paused)

    def __dealloc__(self):
        pace_destroy(&self.pace)
