"""THE switch on operation: version, read-only, key, fence; then the right room. Runs on the connection's I/O loop."""
from libc.stdint cimport uint8_t, uint32_t

from bookie._fast.base.types cimport Status
from bookie._fast.server.ack_queue cimport Ack
from bookie._fast.server.connection cimport Conn
from bookie._fast.server.long_polls cimport Poll
from bookie._fast.server.loop_state cimport IoLoop
from bookie._fast.store.read_pool cimport PoolJob

# Serve one frame body. OK: consumed. FULL: not consumed, try again when there is room. CLOSED: close the connection.
cdef Status dispatch(IoLoop* loop, Conn* conn, const uint8_t* frame, uint32_t size) noexcept nogil
# The group of this acknowledgement is on disk. CLOSED: close the connection.
cdef Status dispatch_ack(IoLoop* loop, Ack* ack) noexcept nogil
# The read pool is done with this job. CLOSED: close the connection.
cdef Status dispatch_read(IoLoop* loop, Conn* conn, PoolJob* job) noexcept nogil
# The wait of this read is over, by whatever ended it. CLOSED: close the connection.
cdef Status dispatch_poll(IoLoop* loop, Conn* conn, const Poll* poll) noexcept nogil
