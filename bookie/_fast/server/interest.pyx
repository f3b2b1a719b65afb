"""Registers the epoll events of connections. Runs on the loop's thread."""
from libc.stdint cimport uint32_t

from bookie._fast.base.epoll cimport EPOLLIN, EPOLLOUT, EPOLL_CTL_MOD, epoll_ctl, epoll_event
from bookie._fast.base.sync cimport bk_load
from bookie._fast.server.loop_state cimport SEALED_BYTES
from bookie._fast.server.turn cimport LINE_BUSY


cdef void rearm(IoLoop* loop, Conn* conn, uint32_t wanted) noexcept nogil:
    cdef epoll_event event
    if wanted == conn.armed:
        return
    conn.armed = wanted
    event.events = wanted
    event.data.ptr = conn
    epoll_ctl(loop.epoll, EPOLL_CTL_MOD, conn.fd, &event)


cdef void arm(IoLoop* loop, Conn* conn) noexcept nogil:
    """Register the epoll events that the connection can use now. For a busy one input mostly stays as it is."""
    cdef uint32_t wanted = 0
    if is_served(conn) and conn.sealed <= SEALED_BYTES and bk_load(&loop.stopping) == 0:
        wanted |= conn.armed & EPOLLIN if conn.turn.line == LINE_BUSY else <uint32_t> EPOLLIN
    if conn.pending or conn.sealed:
        wanted |= EPOLLOUT
    rearm(loop, conn, wanted)


cdef void disarm_input(IoLoop* loop, Conn* conn) noexcept nogil:
    rearm(loop, conn, conn.armed & ~<uint32_t> EPOLLIN)
