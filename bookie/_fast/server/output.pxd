"""Sends the responses of connections, normally at the end of the round in which they were written."""
from bookie._fast.base.types cimport Status
from bookie._fast.server.connection cimport Conn
from bookie._fast.server.loop_state cimport IoLoop

# Send what the kernel accepts now, and count it. OK; PENDING if the kernel is full; CLOSED.
cdef Status flush(IoLoop* loop, Conn* conn) noexcept nogil
# Have the output sent at the end of the round.
cdef void mark_dirty(IoLoop* loop, Conn* conn) noexcept nogil
