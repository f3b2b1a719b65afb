"""Closes connections after their time limits, or when their user is revoked. Runs on the loop's thread."""
from libc.stdint cimport int64_t, uint8_t

from bookie._fast.base.sync cimport bk_load
from bookie._fast.server.connection cimport Conn
from bookie._fast.server.limits cimport AUTH_WAITING, auth_at_first
from bookie._fast.server.membership cimport close_bad
from bookie._fast.server.rejections cimport REVOKED, TOO_LONG_IDLE, TOO_LONG_UNAUTHENTICATED
from bookie._fast.server.turn cimport LINE_NONE

cdef extern from "<sys/socket.h>" nogil:
    ssize_t recv(int, void*, size_t, int) noexcept
    int MSG_DONTWAIT
    int MSG_PEEK

cdef enum:
    LATE_CHECK_NS = 1000000000


cdef bint idle(const Conn* conn, int64_t before) noexcept nogil:
    """Return whether nothing was transferred since then, no response is due, and no request waits in line or socket."""
    cdef uint8_t next_byte
    if conn.active_ns >= before or conn.refs != 1 or conn.stalled_until or conn.turn.line != LINE_NONE:
        return False
    return conn.choked or recv(conn.fd, &next_byte, 1, MSG_PEEK | MSG_DONTWAIT) <= 0


cdef void close_late(IoLoop* loop) noexcept nogil:
    cdef int64_t late = loop.limits.unauthenticated_ms_max * 1000000
    cdef int64_t idle_most = loop.limits.idle_ms_max * 1000000
    cdef Conn* conn = loop.conns
    cdef Conn* following
    cdef int64_t often = LATE_CHECK_NS
    if idle_most == 0 and (late == 0 or auth_at_first(loop.limits) != AUTH_WAITING):
        return
    if loop.late_check and loop.now < loop.late_check:
        return
    while conn != NULL:
        following = conn.next
        if late and conn.login.state == AUTH_WAITING and conn.since_ns < loop.now - late:
            loop.stats.closed_unauthenticated += 1
            close_bad(loop, conn, TOO_LONG_UNAUTHENTICATED)
        elif idle_most and idle(conn, loop.now - idle_most):
            loop.stats.closed_idle += 1
            close_bad(loop, conn, TOO_LONG_IDLE)
        conn = following
    if idle_most:
        often = min(often, idle_most // 4)
    if late:
        often = min(often, late // 4)
    loop.late_check = loop.now + often if loop.conns != NULL else 0


cdef void close_revoked(IoLoop* loop) noexcept nogil:
    cdef Conn* conn = loop.conns
    cdef Conn* following
    cdef int64_t revocations = bk_load(&loop.usage.revocations)
    if revocations == loop.revocations_seen:
        return
    loop.revocations_seen = revocations
    while conn != NULL:
        following = conn.next
        if conn.login.user != NULL and bk_load(&conn.login.user.revoked):
            close_bad(loop, conn, REVOKED)
        conn = following
