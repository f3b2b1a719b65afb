"""Declarations of epoll(7) for the I/O loops."""
from libc.stdint cimport uint32_t

cdef extern from "<sys/epoll.h>" nogil:
    ctypedef union epoll_data_t:
        void* ptr
    struct epoll_event:
        uint32_t events
        epoll_data_t data
    int epoll_create1(int) noexcept
    int epoll_ctl(int, int, int, epoll_event*) noexcept
    int epoll_wait(int, epoll_event*, int, int) noexcept
    int EPOLL_CTL_ADD
    int EPOLL_CTL_DEL
    int EPOLL_CTL_MOD
    int EPOLL_CLOEXEC
    uint32_t EPOLLIN
    uint32_t EPOLLOUT
    uint32_t EPOLLERR
    uint32_t EPOLLHUP
