"""The connections of an I/O loop, from the time they join its list and its epoll until they are closed and freed."""
from libc.stdint cimport uint32_t

from bookie._fast.base.epoll cimport EPOLLIN, EPOLL_CTL_ADD, EPOLL_CTL_DEL, epoll_ctl, epoll_event
from bookie._fast.base.sync cimport bk_add
from bookie._fast.base.tls cimport TLS_HANDSHAKE, tls_close
from bookie._fast.server.addresses cimport Address, address_leave
from bookie._fast.server.admission cimport urgent_leaves
from bookie._fast.server.connection cimport conn_awaited, conn_drop, conn_release
from bookie._fast.server.gate cimport gate_closed
from bookie._fast.server.long_polls cimport polls_cancel
from bookie._fast.server.rejections cimport (
    BAD_FRAME,
    BAD_LENGTH,
    TOO_MUCH_INPUT,
    TOO_MUCH_OUTPUT,
    TOO_SLOW,
    Reason,
    reject,
)
from bookie._fast.server.turn cimport LINE_NONE
from bookie._fast.store.gather cimport answer_begin
from bookie._fast.store.read_pool cimport PoolJob, no_longer_owed, pool_free, pool_withdraw

cdef extern from "<unistd.h>" nogil:
    int c_close "close"(int) noexcept


cdef void leave(IoLoop* loop, Address* address) noexcept nogil:
    """Count the end of a connection, in total and for its address."""
    bk_add(&loop.usage.connections, -1)
    address_leave(&loop.usage.addresses, address)


cdef bint link(IoLoop* loop, Conn* conn) noexcept nogil:
    cdef epoll_event event
    conn.loop = loop
    conn.prev = NULL
    conn.next = loop.conns
    if loop.conns != NULL:
        loop.conns.prev = conn
    loop.conns = conn
    conn.armed = EPOLLIN
    conn.settled = loop.unpin_seen
    event.events = EPOLLIN
    event.data.ptr = conn
    return epoll_ctl(loop.epoll, EPOLL_CTL_ADD, conn.fd, &event) == 0


cdef void unlink(IoLoop* loop, Conn* conn) noexcept nogil:
    cdef epoll_event event
    if conn.stalled_until:
        conn.stalled_until = 0
        loop.stalled -= 1
    if conn.prev != NULL:
        conn.prev.next = conn.next
    else:
        loop.conns = conn.next
    if conn.next != NULL:
        conn.next.prev = conn.prev
    epoll_ctl(loop.epoll, EPOLL_CTL_DEL, conn.fd, &event)


cdef void handshake_over(IoLoop* loop, Conn* conn) noexcept nogil:
    loop.handshaking -= 1
    bk_add(&conn.address.handshakes, -1)


cdef void end_tls(IoLoop* loop, Conn* conn) noexcept nogil:
    if conn.tls.state == TLS_HANDSHAKE:
        handshake_over(loop, conn)
    tls_close(conn.tls, conn.fd)
    conn.tls = NULL


cdef void withdraw_reads(IoLoop* loop, Conn* conn) noexcept nogil:
    """Take its reads that wait for a disk out of the read pool: others need the disk, and a stop need not wait."""
    cdef PoolJob* job
    cdef PoolJob* following
    cdef uint32_t i
    if conn.read_queues == NULL:
        return
    for i in range(loop.stores.count):
        job = pool_withdraw(loop.pool, i, &conn.read_queues[i])
        while job != NULL:
            following = job.next
            answer_begin(&job.answer, &job.request)
            conn_awaited(conn, &job.request, &job.answer)
            conn.refs -= 1
            no_longer_owed(loop.pool, &loop.inbox, job)
            pool_free(loop.pool, job)
            job = following


cdef void close_conn(IoLoop* loop, Conn* conn) noexcept nogil:
    """Close the socket now; the memory is freed when the last response that refers to it has arrived."""
    if conn.fd < 0:
        return
    if conn.tls != NULL:
        end_tls(loop, conn)
    unlink(loop, conn)
    c_close(conn.fd)
    conn.fd = -1
    urgent_leaves(conn)
    leave(loop, conn.address)
    conn.address = NULL
    conn.refs -= polls_cancel(&loop.polls, &conn.polls)
    withdraw_reads(loop, conn)
    conn_drop(conn)
    gate_closed(loop, conn)
    if not conn.dirty and conn.turn.line == LINE_NONE:
        conn_release(conn)       # else it is released when it is taken off those lists


cdef void close_bad(IoLoop* loop, Conn* conn, Reason reason) noexcept nogil:
    if conn.fd < 0:
        return
    if reason == BAD_LENGTH or reason == BAD_FRAME:
        loop.stats.broken_frames += 1
    elif reason == TOO_MUCH_INPUT or reason == TOO_MUCH_OUTPUT or reason == TOO_SLOW:
        loop.stats.closed_by_limit += 1
    reject(&loop.rejections, conn.address.ip, reason)
    close_conn(loop, conn)


cdef void close_failed(IoLoop* loop, Conn* conn, Reason otherwise) noexcept nogil:
    if conn.gone:
        close_conn(loop, conn)
    else:
        close_bad(loop, conn, <Reason> conn.why if conn.why else otherwise)
