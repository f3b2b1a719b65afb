"""Copies slices that caches need back, and closes connections with the most unsent output."""
from libc.stdint cimport INT64_MAX, int64_t, uint64_t

from bookie._fast.base.sync cimport bk_load
from bookie._fast.base.waker cimport waker_wake
from bookie._fast.server.connection cimport OUT_LITTLE, conn_settle, conn_shrink
from bookie._fast.server.membership cimport close_bad
from bookie._fast.server.rejections cimport TOO_SLOW

cdef enum:
    RELIEF_NS = 10000000


cdef inline uint64_t weight(const Conn* conn) noexcept nogil:
    """Return the bytes of the budget that the connection would take if all of its output were copied."""
    return conn.out_room + conn.sealed + conn.sliced


cdef inline bint is_large(const Conn* conn) noexcept nogil:
    return conn.out_room + conn.sealed > OUT_LITTLE


cdef inline bint may_wait(const Conn* conn) noexcept nogil:
    """Return whether its unsent output may wait: a little always, much while half of the budget is free."""
    return not is_large(conn) or bk_load(&conn.usage.output_bytes) <= conn.limits.output_bytes_max // 2


cdef bint shrink_all(IoLoop* loop) noexcept nogil:
    """Free what the output buffers of this loop hold beyond their unsent bytes; return whether that was much."""
    cdef bint gave = False
    cdef Conn* conn = loop.conns
    while conn != NULL:
        if conn_shrink(conn):
            gave = True
        conn = conn.next
    return gave


cdef inline bint may_go(const IoLoop* loop, const Conn* conn) noexcept nogil:
    """Return whether closing it helps: its kernel accepts nothing, and it holds much or was not checked this time."""
    return conn.stuck_ns and (is_large(conn) or (conn.slices and conn.settled != loop.unpin_seen))


cdef void close_slowest(IoLoop* loop, Conn* conn) noexcept nogil:
    """Close, of the connections with at least half as much unsent output as the largest has, the one whose kernel has
    accepted nothing for longest: a client with little unsent output is not closed because of another with
    much. Close `conn` if there is no other.
    """
    cdef Conn* slowest = conn
    cdef Conn* other = loop.conns
    cdef uint64_t most = weight(conn)
    cdef int64_t since
    while other != NULL:
        if may_go(loop, other):
            most = max(most, weight(other))
        other = other.next
    since = INT64_MAX if weight(conn) < most // 2 else (conn.stuck_ns if conn.stuck_ns else loop.now)
    other = loop.conns
    while other != NULL:
        if may_go(loop, other) and weight(other) >= most // 2 and other.stuck_ns < since:
            slowest = other
            since = other.stuck_ns
        other = other.next
    close_bad(loop, slowest, TOO_SLOW)


cdef void make_room(IoLoop* loop, Conn* conn) noexcept nogil:
    """Free some of the budget of output, which does not allow what `conn` needs: spare buffers, else a connection."""
    if not shrink_all(loop):
        close_slowest(loop, conn)


cdef void settle(IoLoop* loop, Conn* conn) noexcept nogil:
    while conn.fd >= 0 and (not conn_settle(conn, False) or not may_wait(conn)):
        make_room(loop, conn)


cdef inline bint is_short(const IoLoop* loop) noexcept nogil:
    """Return whether so much of the budget is taken that soon there is no room for small responses either."""
    cdef int64_t most = loop.limits.output_bytes_max
    return bk_load(&loop.usage.output_bytes) > most - most // 16 * 3


cdef Conn* stuck_longest(IoLoop* loop) noexcept nogil:
    cdef Conn* found = NULL
    cdef Conn* conn = loop.conns
    while conn != NULL:
        if conn.stuck_ns and (found == NULL or conn.stuck_ns < found.stuck_ns):
            found = conn
        conn = conn.next
    return found


cdef void relieve(IoLoop* loop) noexcept nogil:
    """Close connections with little output too, if there are very many: here now, and on other loops by waking them."""
    cdef Conn* stuck
    cdef int i
    while is_short(loop):
        if shrink_all(loop):
            continue
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
            make_room(loop, conn)
            conn = loop.conns                # the connection before may be closed
            continue
        conn.settled = wanted
        conn = conn.next
