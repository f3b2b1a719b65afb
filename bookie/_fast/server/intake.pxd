"""From a socket to dispatch: what a loop does with bytes that arrive.

It may close the connection: the caller holds a reference and looks at `fd` afterwards.
"""
from bookie._fast.server.connection cimport Conn
from bookie._fast.server.loop_state cimport IoLoop

# A turn of the connection: serve what is held, then receive once and serve that, as far as its credit reaches. What
# remains is held; `turn.more` says whether its socket may have more.
cdef void take_turn(IoLoop* loop, Conn* conn) noexcept nogil
