"""START_TLS: a connection gets its last response in clear, and moves to a loop that serves encrypted connections.

So handshakes and ciphers never delay clear connections. The `Conn` itself moves, with its authentication. It must have
no request in progress, so the two loops' threads never use it at the same time. A peer must not
send anything after START_TLS before the response. If it does, the connection is closed, except for the one message that
Java's client sends there (module `server.clear_auth`).
"""
from bookie._fast.base.types cimport Status
from bookie._fast.server.connection cimport Conn
from bookie._fast.server.loop_state cimport IoLoop

# Handle START_TLS. OK: answer that, and serve nothing more here. BAD_REQUEST: TLS is not configured, or already on.
# CLOSED: close the connection, because requests are in progress.
cdef Status start_tls(IoLoop* loop, Conn* conn) noexcept nogil
# Hand over a connection that is to move and is flushed, with the caller's reference. True: this loop has lost it.
cdef bint move_on(IoLoop* loop, Conn* conn) noexcept nogil
# On a TLS loop: take over moved connections, and close those whose handshake takes too long.
cdef void take_moved(IoLoop* loop) noexcept nogil
cdef void expire_handshakes(IoLoop* loop) noexcept nogil
# Close connections that no loop took over, after all loops have ended.
cdef void drop_moved(IoLoop* loop) noexcept nogil
# Continue the handshake. OK: complete. PENDING: more to come. CLOSED: close the connection.
cdef Status shake_hands(IoLoop* loop, Conn* conn) noexcept nogil
