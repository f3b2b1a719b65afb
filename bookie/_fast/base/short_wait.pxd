"""Waits for something that another thread does within microseconds, unless it is stopped meanwhile. Any thread."""
from libc.stdint cimport uint32_t

cdef extern from "<sched.h>" nogil:
    int sched_yield() noexcept

cdef extern from "<unistd.h>" nogil:
    int usleep(unsigned int microseconds) noexcept

cdef enum:
    SHORT_WAIT_YIELDS = 1000
    SHORT_WAIT_US = 100

cdef inline void wait_shortly(uint32_t* looks) noexcept nogil:
    """Let other threads run between two looks at a condition. A wait that goes on for longer than usual sleeps, so that
    it costs no CPU while the other thread is stopped. `looks` counts them, and is 0 at first.
    """
    if looks[0] < SHORT_WAIT_YIELDS:
        looks[0] += 1
        sched_yield()
    else:
        usleep(SHORT_WAIT_US)
