"""Which connections a loop owns.

A Conn lives until its socket is closed and the last answer that refers to it has come.
"""
from bookie._fast.base.types cimport Status
from bookie._fast.server.rejections cimport Reason
from bookie._fast.server.connection cimport Conn
from bookie._fast.server.loop_state cimport IoLoop

# One reference less; the last one frees.
cdef void release(Conn* conn) noexcept nogil
cdef void close_conn(IoLoop* loop, Conn* conn) noexcept nogil
# In and out of the loop's list and its epoll. False: epoll does not know it.
cdef bint link(IoLoop* loop, Conn* conn) noexcept nogil
cdef void unlink(IoLoop* loop, Conn* conn) noexcept nogil
# The peer broke a rule: its open connection ends, and the log will say why.
cdef void close_bad(IoLoop* loop, Conn* conn, Reason reason) noexcept nogil
# Serving it came to CLOSED: for the reason that was noted, or this one; without one where its peer hung up.
cdef void close_failed(IoLoop* loop, Conn* conn, Reason otherwise) noexcept nogil
# A handshake has come to an end, good or bad; the connection is open still.
cdef void handshake_over(IoLoop* loop, Conn* conn) noexcept nogil
# Give the kernel what it takes now, counted: OK, PENDING when it is full, CLOSED.
cdef Status flush(IoLoop* loop, Conn* conn) noexcept nogil
# Its output is written at the end of the round.
cdef void mark_dirty(IoLoop* loop, Conn* conn) noexcept nogil
cdef void arm(IoLoop* loop, Conn* conn) noexcept nogil
# It waits for its turn: what arrives meanwhile is no news.
cdef void disarm_input(IoLoop* loop, Conn* conn) noexcept nogil
# Whether its requests are served: none of them waits for room, for an answer, or for its peer.
cdef inline bint is_served(const Conn* conn) noexcept nogil:
    return (conn.fd >= 0 and not conn.choked and not conn.gated and not conn.upgrading and conn.stalled_until == 0)
cdef void accept_some(IoLoop* loop) noexcept nogil
# Close what outstayed its time, when it is time to look.
cdef void close_late(IoLoop* loop) noexcept nogil
# Close those whose user was revoked since the last look.
cdef void close_revoked(IoLoop* loop) noexcept nogil
# Connections that another loop accepted for this one.
cdef void take_handed(IoLoop* loop) noexcept nogil
