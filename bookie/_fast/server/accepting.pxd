"""Accepting connections: the loop that has the listening socket accepts them and hands them to all loops in turn."""
from bookie._fast.server.loop_state cimport IoLoop

# Accept a batch of connections from the backlog. Those that exceed a limit are closed at once.
cdef void accept_some(IoLoop* loop) noexcept nogil
# Accept again if a pause is over.
cdef void end_pause(IoLoop* loop) noexcept nogil
# Take over the connections that another loop accepted for this one.
cdef void take_handed(IoLoop* loop) noexcept nogil
