"""Lines of connections, and the cost of a turn."""
from bookie._fast.server.connection cimport conn_release
from bookie._fast.server.interest cimport is_served
from bookie._fast.server.turn cimport LINE_BUSY, LINE_FRESH, LINE_NONE, LINE_STALLED, Queue


cdef inline void charge(Conn* conn) noexcept nogil:
    """Charge the responses written since the last call, whatever wrote them."""
    conn.turn.credit -= conn.turn.written - conn.turn.charged
    conn.turn.charged = conn.turn.written


cdef void turns_wait(IoLoop* loop, Conn* conn, Line line) noexcept nogil:
    cdef Queue* queue = &loop.turns.lines[<int> line]
    conn.turn.line = line
    conn.turn.next = NULL
    if queue.last != NULL:
        (<Conn*> queue.last).turn.next = conn
    else:
        queue.first = conn
    queue.last = conn
    queue.count += 1


cdef void turns_enter(IoLoop* loop, Conn* conn) noexcept nogil:
    if conn.turn.line != LINE_NONE or not is_served(conn):
        return
    charge(conn)
    if conn.turn.calms != loop.turns.calms:
        conn.turn.calms = loop.turns.calms
        conn.turn.credit = 0
    turns_wait(loop, conn, LINE_FRESH if conn.turn.credit >= 0 else LINE_BUSY)


cdef Conn* turns_next(IoLoop* loop, Line line) noexcept nogil:
    cdef Queue* queue = &loop.turns.lines[<int> line]
    cdef Conn* conn = <Conn*> queue.first
    while conn != NULL:
        queue.first = conn.turn.next
        if queue.first == NULL:
            queue.last = NULL
        queue.count -= 1
        conn.turn.line = LINE_NONE
        if conn.fd >= 0:
            return conn
        if not conn.dirty:
            conn_release(conn)
        conn = <Conn*> queue.first
    return NULL


cdef bint turns_none(const IoLoop* loop) noexcept nogil:
    return loop.turns.lines[<int> LINE_FRESH].first == NULL and loop.turns.lines[<int> LINE_BUSY].first == NULL


cdef bint turn_begin(IoLoop* loop, Conn* conn, int64_t most) noexcept nogil:
    charge(conn)
    if turns_none(loop) and loop.turns.lines[<int> LINE_STALLED].first == NULL:
        conn.turn.credit = ALONE_COST
    else:
        conn.turn.credit = most + min(conn.turn.credit, <int64_t> 0)
    return conn.turn.credit > 0


cdef void turn_spend(Conn* conn, uint64_t size) noexcept nogil:
    conn.turn.credit -= REQUEST_COST + <int64_t> size
    charge(conn)


cdef void turns_calm(IoLoop* loop) noexcept nogil:
    loop.turns.calms += 1
