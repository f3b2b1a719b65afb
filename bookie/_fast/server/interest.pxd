"""Which events a loop asks epoll for: input only while the connection's requests are served."""
from bookie._fast.server.connection cimport Conn
from bookie._fast.server.loop_state cimport IoLoop

# Ask for the events that the connection can use now.
cdef void arm(IoLoop* loop, Conn* conn) noexcept nogil
# Ask for no input while the connection waits for its turn.
cdef void disarm_input(IoLoop* loop, Conn* conn) noexcept nogil
# Whether its requests are served: none of them waits for room, for an answer, or for its peer.
cdef inline bint is_served(const Conn* conn) noexcept nogil:
    return (conn.fd >= 0 and not conn.choked and not conn.gated and not conn.upgrading and conn.stalled_until == 0)
