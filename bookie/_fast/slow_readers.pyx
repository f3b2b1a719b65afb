"""Settling connections, and closing the slowest."""
from libc.stdint cimport int64_t

from bookie._fast.complaints cimport TOO_SLOW
from bookie._fast.connection cimport conn_is_large, conn_may_wait, conn_settle
from bookie._fast.membership cimport close_bad
from bookie._fast.sync cimport bk_load


cdef void close_slowest(IoLoop* loop, Conn* conn) noexcept nogil:
    """The budget does not allow what `conn` needs: close the one that has taken nothing for longest, of those that hold
    much or are still to be looked at; `conn` itself where there is no other.
    """
    cdef Conn* slowest = conn
    cdef Conn* other = loop.conns
    cdef int64_t since = conn.stuck_ns if conn.stuck_ns else loop.now
    while other != NULL:
        if (other.stuck_ns and other.stuck_ns < since
                and (conn_is_large(other) or (other.slices and other.settled != loop.unpin_seen))):
            slowest = other
            since = other.stuck_ns
        other = other.next
    close_bad(loop, slowest, TOO_SLOW)


cdef void settle(IoLoop* loop, Conn* conn) noexcept nogil:
    while conn.fd >= 0 and (not conn_settle(conn, False) or not conn_may_wait(conn)):
        close_slowest(loop, conn)


cdef void settle_all(IoLoop* loop) noexcept nogil:
    cdef int64_t wanted = bk_load(&loop.stores.unpin_wanted)
    cdef Conn* conn = loop.conns
    if wanted == loop.unpin_seen:
        return
    loop.unpin_seen = wanted
    while conn != NULL:
        if conn.settled != wanted and conn.slices and not conn_settle(conn, True):
            close_slowest(loop, conn)
            conn = loop.conns                # where it stood may be gone
            continue
        conn.settled = wanted
        conn = conn.next
