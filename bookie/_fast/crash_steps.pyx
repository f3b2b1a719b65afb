"""The one step after which this process ends, for tests."""
from libc.stdint cimport int64_t

cdef extern from "<stdlib.h>" nogil:
    void abort() noexcept

cdef int64_t step_to_stop = 0


cdef void step(int64_t reached) noexcept nogil:
    if step_to_stop == reached:
        abort()


def crash_after_step(number: int) -> None:
    """End the process by a signal the next time this step is reached; 0: never."""
    global step_to_stop
    step_to_stop = number
