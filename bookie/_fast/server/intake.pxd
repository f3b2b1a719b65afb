"""From a socket to dispatch: what a loop does with received bytes.

The connection may be closed: the caller holds a reference and checks `fd` afterwards.
"""
from bookie._fast.server.connection cimport Conn
from bookie._fast.server.loop_state cimport IoLoop

# Run a turn of the connection: serve held input, then receive once and serve that, as far as its credit allows. The
# rest is held; `turn.more` tells whether the socket may have more.
cdef void take_turn(IoLoop* loop, Conn* conn) noexcept nogil
