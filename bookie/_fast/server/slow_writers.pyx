"""Closes connections with unfinished frames when there is no more memory for input."""
from libc.stdint cimport int64_t, uint32_t

from bookie._fast.base.cursor cimport load_i32
from bookie._fast.base.sync cimport bk_add, bk_load
from bookie._fast.base.waker cimport waker_wake
from bookie._fast.server.connection cimport conn_hold_room
from bookie._fast.server.membership cimport close_bad
from bookie._fast.server.rejections cimport TOO_MUCH_INPUT
from bookie._fast.wire.v2 cimport FRAME_PREFIX

cdef enum:
    HELD_LITTLE = 1 << 16        # closing a connection that holds less does not help
    PATIENCE_NS = 1000000000     # a peer that sends its frame steadily is left alone for this long


cdef inline bint may_go(const IoLoop* loop, const Conn* conn) noexcept nogil:
    """Return whether it holds much of a frame that is unfinished and began some time ago."""
    return (conn.held_room > HELD_LITTLE and conn.held_since <= loop.now - PATIENCE_NS
            and conn.held_size >= FRAME_PREFIX and conn.held_size < <uint64_t> load_i32(conn.held) + FRAME_PREFIX)


cdef Conn* slowest(IoLoop* loop, const Conn* but) noexcept nogil:
    """Return, of the connections that hold at least half as much as the largest, the one whose frame began first."""
    cdef uint64_t most = 0
    cdef Conn* found = NULL
    cdef Conn* conn = loop.conns
    while conn != NULL:
        if conn != but and may_go(loop, conn):
            most = max(most, conn.held_room)
        conn = conn.next
    conn = loop.conns if most else NULL
    while conn != NULL:
        if (conn != but and may_go(loop, conn) and conn.held_room >= most // 2
                and (found == NULL or conn.held_since < found.held_since)):
            found = conn
        conn = conn.next
    return found


cdef inline bint is_short(const IoLoop* loop, uint64_t size) noexcept nogil:
    return bk_load(&loop.usage.input_bytes) + <int64_t> size > loop.limits.input_bytes_max


cdef void ask_others(IoLoop* loop) noexcept nogil:
    cdef uint32_t i
    loop.input_asked = bk_add(&loop.usage.input_asked, 1)
    for i in range(loop.stores.loop_count):
        if loop.stores.loops[i] != &loop.waker:
            waker_wake(loop.stores.loops[i])


cdef bint hold_room(IoLoop* loop, Conn* conn, uint64_t room) noexcept nogil:
    cdef Conn* other
    while room > conn.held_room and is_short(loop, room - conn.held_room):
        other = slowest(loop, conn)
        if other == NULL:
            ask_others(loop)
            return False
        close_bad(loop, other, TOO_MUCH_INPUT)
    return conn_hold_room(conn, room)


cdef void yield_room(IoLoop* loop) noexcept nogil:
    cdef int64_t asked = bk_load(&loop.usage.input_asked)
    cdef Conn* conn
    if asked == loop.input_asked:
        return
    loop.input_asked = asked
    conn = slowest(loop, NULL) if is_short(loop, <uint64_t> loop.limits.input_bytes_max // 4) else NULL
    if conn != NULL:
        close_bad(loop, conn, TOO_MUCH_INPUT)
