"""Whose unfinished frames give way when these fill the memory for input.

A frame that does not arrive in one piece is held until it is complete. Peers that send the beginnings of long frames,
and then nothing, could fill the budget of input, and everybody else who needs some of it would be closed. So, when it
is used up, connections of this loop are closed whose frame has been unfinished for a second or more: of those that hold
most, the one whose frame began first. If there is none, the one that needs room is closed, and the other loops look
among theirs. Runs on the loop's thread.
"""
from libc.stdint cimport uint64_t

from bookie._fast.server.connection cimport Conn
from bookie._fast.server.loop_state cimport IoLoop

# Make room for `room` bytes of held input. It may close other connections. False: close this one.
cdef bint hold_room(IoLoop* loop, Conn* conn, uint64_t room) noexcept nogil
# Once a round: close a connection if another loop had nobody to close.
cdef void yield_room(IoLoop* loop) noexcept nogil
