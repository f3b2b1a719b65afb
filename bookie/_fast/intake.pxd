"""From a socket to dispatch: what a loop does with bytes that arrive.

It may close the connection: the caller holds a reference and looks at `fd` afterwards.
"""
from bookie._fast.connection cimport Conn
from bookie._fast.loop_state cimport IoLoop

# A turn of the connection: serve what is held, receive and serve more, until its credit is spent or there is nothing
# to serve now. What remains is held.
cdef void take_turn(IoLoop* loop, Conn* conn) noexcept nogil
