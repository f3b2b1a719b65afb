"""How connections come to a loop: accepted by the one that has the listening socket, and dealt out in turn."""
from bookie._fast.server.loop_state cimport IoLoop

# Accept a batch of what waits in the backlog; whoever exceeds a limit is closed at once.
cdef void accept_some(IoLoop* loop) noexcept nogil
# Take over the connections that another loop accepted for this one.
cdef void take_handed(IoLoop* loop) noexcept nogil
