"""poll(2): wait for some descriptors, in threads that have no loop of their own."""

cdef extern from "<poll.h>" nogil:
    struct pollfd:
        int fd
        short events
        short revents
    int poll(pollfd*, unsigned long, int) noexcept
    short POLLIN
    short POLLOUT
