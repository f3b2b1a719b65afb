"""The epoll events of a connection. Input events are only registered while its requests are served."""
from bookie._fast.server.connection cimport Conn
from bookie._fast.server.loop_state cimport IoLoop

# Register the events that the connection can use now.
cdef void arm(IoLoop* loop, Conn* conn) noexcept nogil
# Stop input events of a connection that waits for its turn anyway.
cdef void disarm_input(IoLoop* loop, Conn* conn) noexcept nogil
# Return whether its requests are served: none waits for room, for an answer from Python, or for its peer.
cdef inline bint is_served(const Conn* conn) noexcept nogil:
    return (conn.fd >= 0 and not conn.choked and not conn.gated and not conn.upgrading and conn.stalled_until == 0)
