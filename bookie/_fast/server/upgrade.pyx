"""From clear to encrypted: the decision, the hand-over between loops, handshakes and their time limit."""
from libc.stdint cimport int64_t, uint32_t

from bookie._fast.base.sync cimport bk_add, bk_load_pointer, bk_store_pointer, pthread_mutex_lock, pthread_mutex_unlock
from bookie._fast.base.tls cimport TLS_HANDSHAKE, tls_accept, tls_certificate, tls_handshake
from bookie._fast.base.types cimport BAD_REQUEST, CLOSED, OK
from bookie._fast.base.waker cimport waker_wake
from bookie._fast.server.clear_auth cimport CLEAR_AWAITED
from bookie._fast.server.gate cimport gate_upgraded
from bookie._fast.server.loop_state cimport HANDSHAKE_TICK_MS, INPUT_BYTES
from bookie._fast.server.membership cimport close_bad, close_conn, handshake_over, link, unlink
from bookie._fast.server.output cimport mark_dirty
from bookie._fast.server.rejections cimport (
    EARLY_TLS,
    TOO_LONG_HANDSHAKE,
    TOO_MANY_HANDSHAKES,
    TOO_MANY_HANDSHAKES_OF_ADDRESS,
    Reason,
)

cdef enum:
    REFS_IDLE = 2                # the open connection's, and the loop's while it serves this request


cdef Status start_tls(IoLoop* loop, Conn* conn) noexcept nogil:
    if loop.tls_loop_count == 0 or conn.tls != NULL:
        return BAD_REQUEST
    if conn.refs > REFS_IDLE:
        conn.why = EARLY_TLS
        return CLOSED
    conn.upgrading = True
    conn.clear_auth = CLEAR_AWAITED
    return OK


cdef bint move_on(IoLoop* loop, Conn* conn) noexcept nogil:
    cdef IoLoop* target
    if not conn.upgrading or conn.pending or conn.dirty or conn.fd < 0 or conn.refs > REFS_IDLE:
        return False
    target = loop.tls_loops[loop.tls_loop_next]
    loop.tls_loop_next = (loop.tls_loop_next + 1) % loop.tls_loop_count
    unlink(loop, conn)
    loop.stats.upgrades += 1
    conn.upgrading = False
    conn.refs -= 1
    pthread_mutex_lock(&target.handed_lock)
    conn.next = target.moved
    bk_store_pointer(<void**> &target.moved, conn)       # the loop reads this without the lock
    # Under the lock: once the connection may be taken over, it may also be freed.
    waker_wake(&target.waker)
    pthread_mutex_unlock(&target.handed_lock)
    return True


cdef Reason begin_handshake(IoLoop* loop, Conn* conn) noexcept nogil:
    """Begin the handshake. If that fails, `tls` stays NULL, and the result is the reason."""
    if bk_add(&conn.address.handshakes, 1) > loop.tls.per_address_max:
        bk_add(&conn.address.handshakes, -1)
        bk_add(&loop.tls.failed, 1)
        return TOO_MANY_HANDSHAKES_OF_ADDRESS
    conn.tls = tls_accept(loop.tls)
    if conn.tls == NULL:
        bk_add(&conn.address.handshakes, -1)
    else:
        loop.handshaking += 1
    return TOO_MANY_HANDSHAKES


cdef void take_moved(IoLoop* loop) noexcept nogil:
    cdef Conn* conn
    cdef Conn* following
    cdef bint known
    cdef Reason why
    if bk_load_pointer(<void**> &loop.moved) == NULL:
        return
    pthread_mutex_lock(&loop.handed_lock)
    conn = loop.moved
    loop.moved = NULL
    pthread_mutex_unlock(&loop.handed_lock)
    while conn != NULL:
        following = conn.next
        known = link(loop, conn)
        why = begin_handshake(loop, conn)
        if not known or conn.tls == NULL:
            close_bad(loop, conn, why)
        conn = following


cdef void drop_moved(IoLoop* loop) noexcept nogil:
    cdef Conn* conn = loop.moved
    cdef Conn* following
    loop.moved = NULL
    while conn != NULL:
        following = conn.next
        link(loop, conn)
        close_conn(loop, conn)
        conn = following


cdef void expire_handshakes(IoLoop* loop) noexcept nogil:
    cdef Conn* conn = loop.conns
    cdef Conn* following
    cdef int64_t now
    if loop.handshaking == 0:
        return
    now = loop.now
    if now < loop.handshakes_checked + HANDSHAKE_TICK_MS * 1000000:
        return
    loop.handshakes_checked = now
    while conn != NULL:
        following = conn.next
        if conn.tls.state == TLS_HANDSHAKE and now >= conn.tls.deadline_ns:
            close_bad(loop, conn, TOO_LONG_HANDSHAKE)
        conn = following


cdef Status shake_hands(IoLoop* loop, Conn* conn) noexcept nogil:
    cdef uint32_t size
    cdef Status status = tls_handshake(conn.tls)
    if conn.tls.state != TLS_HANDSHAKE:
        handshake_over(loop, conn)
    if status != OK:
        return status
    # Nothing is held yet, so the loop's input buffer is free.
    size = tls_certificate(conn.tls, loop.input, INPUT_BYTES)
    mark_dirty(loop, conn)
    return gate_upgraded(loop, conn, loop.input if size else NULL, size)
