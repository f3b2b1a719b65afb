"""Writes every response of the data path, in the protocol of its request. Runs on the connection's I/O loop.

Responses are appended to the connection's output. CLOSED means that the output exceeds its budget or there is no
memory: close the connection.
"""
from bookie._fast.base.types cimport Status
from bookie._fast.server.ack_queue cimport Ack
from bookie._fast.server.connection cimport Conn
from bookie._fast.server.loop_state cimport IoLoop
from bookie._fast.store.gather cimport Answer, ReadRequest
from bookie._fast.wire.request cimport Request

# Write a response without entries: an acknowledgement or an error.
cdef Status reply_code(IoLoop* loop, Conn* conn, const Request* request, Status status) noexcept nogil
# Write the response to a V3 request that has none of its own: a copy of its header, and a status.
cdef Status reply_refused(IoLoop* loop, Conn* conn, const Request* request, Status status) noexcept nogil
# Write the acknowledgement that `ack` describes.
cdef Status reply_ack(IoLoop* loop, const Ack* ack) noexcept nogil
# Write entries, or the reason why there are none. Releases the answer's pins.
cdef Status reply_read(IoLoop* loop, Conn* conn, const ReadRequest* request, Answer* answer) noexcept nogil
# Write what a bookie without authentication answers to AUTH.
cdef Status reply_auth(IoLoop* loop, Conn* conn, const Request* request) noexcept nogil
