"""START_TLS: a connection is answered in clear for the last time and moves to a loop that serves encrypted ones.

Handshakes and ciphers so never hold up clear connections. The `Conn` itself moves, with its authentication: nothing may
be outstanding on it, so both loops' threads never know it at the same time. What was received behind START_TLS was
written by somebody who could not know that the answer is yes: the connection is closed, unless it is the one message
that upstream's client sends there (module `server.clear_auth`).
"""
from bookie._fast.base.types cimport Status
from bookie._fast.server.connection cimport Conn
from bookie._fast.server.loop_state cimport IoLoop

# The peer asks for TLS. OK: answer so, and serve nothing more here. BAD_REQUEST: it is not configured, or on already.
# CLOSED: close the connection, because answers are outstanding.
cdef Status start_tls(IoLoop* loop, Conn* conn) noexcept nogil
# When it is to move and all is flushed, hand it over with the caller's reference: True, it is not this loop's any more.
cdef bint move_on(IoLoop* loop, Conn* conn) noexcept nogil
# On a TLS loop: take over connections, and close those whose handshake takes too long.
cdef void take_moved(IoLoop* loop) noexcept nogil
cdef void expire_handshakes(IoLoop* loop) noexcept nogil
# All loops have ended: close what none of them took over any more.
cdef void drop_moved(IoLoop* loop) noexcept nogil
# Go on with the handshake. OK: done. PENDING: more to come. CLOSED: close the connection.
cdef Status shake_hands(IoLoop* loop, Conn* conn) noexcept nogil
