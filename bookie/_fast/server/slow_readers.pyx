"""Settling connections, and closing the slowest."""
from libc.stdint cimport int64_t

from bookie._fast.base.sync cimport bk_load
from bookie._fast.base.waker cimport waker_wake
from bookie._fast.server.complaints cimport TOO_SLOW
from bookie._fast.server.connection cimport conn_is_large, conn_may_wait, conn_settle
from bookie._fast.server.membership cimport close_bad

cdef enum:
    RELIEF_NS = 10000000


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


cdef inline bint is_short(const IoLoop* loop) noexcept nogil:
    """Whether more is taken than those who hold much may take: soon there is no room for little answers either."""
    cdef int64_t most = loop.limits.output_bytes_max
    return bk_load(&loop.limits.output_bytes) > most - most // 16 * 3


cdef Conn* stuck_longest(IoLoop* loop) noexcept nogil:
    cdef Conn* found = NULL
    cdef Conn* conn = loop.conns
    while conn != NULL:
        if conn.stuck_ns and (found == NULL or conn.stuck_ns < found.stuck_ns):
            found = conn
        conn = conn.next
    return found


cdef void relieve(IoLoop* loop) noexcept nogil:
    """Those who hold little are closed, too, when they are very many: on this loop now, on the others by themselves."""
    cdef Conn* stuck
    cdef int i
    while is_short(loop):
        stuck = stuck_longest(loop)
        if stuck == NULL:
            break
        close_bad(loop, stuck, TOO_SLOW)
    if is_short(loop) and loop.now >= loop.relief_due:
        loop.relief_due = loop.now + RELIEF_NS
        for i in range(loop.stores.loop_count):
            if loop.stores.loops[i] != &loop.waker:
                waker_wake(loop.stores.loops[i])


cdef void settle_all(IoLoop* loop) noexcept nogil:
    cdef int64_t wanted = bk_load(&loop.stores.unpin_wanted)
    cdef Conn* conn
    if is_short(loop):
        relieve(loop)
    conn = loop.conns
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
