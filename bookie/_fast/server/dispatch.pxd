"""The switch on the operation: version, read-only, key, fence; then the module in charge. Runs on the I/O loop."""
from libc.stdint cimport uint8_t, uint32_t

from bookie._fast.base.types cimport Status
from bookie._fast.server.ack_queue cimport Ack
from bookie._fast.server.connection cimport Conn
from bookie._fast.server.long_polls cimport Poll
from bookie._fast.server.loop_state cimport IoLoop
from bookie._fast.store.read_pool cimport PoolJob

# Serve the body of one frame. OK: consumed. FULL: not consumed, retry when there is room. CLOSED: close the
# connection.
cdef Status dispatch(IoLoop* loop, Conn* conn, const uint8_t* frame, uint32_t size) noexcept nogil
# Answer an Ack whose group is published. CLOSED: close the connection.
cdef Status dispatch_ack(IoLoop* loop, Ack* ack) noexcept nogil
# Answer a job that the read pool has finished. CLOSED: close the connection.
cdef Status dispatch_read(IoLoop* loop, Conn* conn, PoolJob* job) noexcept nogil
# Answer a long poll that has ended, for any reason. CLOSED: close the connection.
cdef Status dispatch_poll(IoLoop* loop, Conn* conn, const Poll* poll) noexcept nogil
