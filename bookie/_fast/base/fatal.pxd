"""The latch of the first unrecoverable failure. Once it is set, nothing is acknowledged any more and the process
ends.

One per process. Any thread may set it, and only the first call counts; the server's supervisor waits for it (`wait`)
and exits.
"""
# Set the latch with what failed (copied) and its errno.
cdef void fatal_set(const char* what, int error) noexcept nogil
cdef bint fatal_is_set() noexcept nogil
