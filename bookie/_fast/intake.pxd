"""From a socket to dispatch: what a loop does with bytes that arrive.

Both functions may close the connection: the caller holds a reference and looks at `fd` afterwards.
"""
from bookie._fast.connection cimport Conn
from bookie._fast.loop_state cimport IoLoop

# The socket is readable: take in what is there, serve every complete frame, keep the rest.
cdef void receive(IoLoop* loop, Conn* conn) noexcept nogil
# Go on with input that waited for room, for the peer to read, or for an answer from elsewhere.
cdef void serve_held(IoLoop* loop, Conn* conn) noexcept nogil
