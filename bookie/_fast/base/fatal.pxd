"""The latch of the first unrecoverable failure. After it is set nothing more is acknowledged and the process ends.

Any thread may set it; the first one wins. The server's supervisor waits for it (`wait`) and exits. One per process.
"""
cdef void fatal_set(const char* what, int error) noexcept nogil
cdef bint fatal_is_set() noexcept nogil
