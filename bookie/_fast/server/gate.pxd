"""What a connection may ask, before it is authenticated and after that, and the way of its frames to Python and back.

Runs on the connection's I/O loop. A connection starts OPEN when no authentication is configured, else WAITING; it is
DONE when Python says so (module server.limits). While Python works on its authentication it is `gated`: no further
frame of it is looked at, so that whatever follows meets the outcome. Afterwards it may do what its user has a right to
(module `users`); one that may do everything does not come here.
"""
from libc.stdint cimport uint8_t, uint32_t

from bookie._fast.base.types cimport Status
from bookie._fast.server.connection cimport Conn
from bookie._fast.server.loop_state cimport IoLoop
from bookie._fast.server.policy cimport PolicyJob
from bookie._fast.wire.request cimport Request

# A request of a connection that may not do everything. OK: serve it. PENDING: Python has it, the connection is gated.
# UNAUTHORIZED: answer so, and close the connection where its reason (`why`) is set. CLOSED: close the connection.
cdef Status gate_admit(IoLoop* loop, Conn* conn, const Request* request, bint parsed, const uint8_t* frame,
                       uint32_t size) noexcept nogil
# Let Python answer this request. OK, or TOO_MANY_REQUESTS.
cdef Status gate_submit(IoLoop* loop, Conn* conn, const Request* request, const uint8_t* frame,
                        uint32_t size) noexcept nogil
# The connection is encrypted now, and WAITING until Python has said what counts of that which it proved in clear;
# `certificate` (DER) is the peer's, NULL: it has none. CLOSED: close the connection.
cdef Status gate_upgraded(IoLoop* loop, Conn* conn, const uint8_t* certificate, uint32_t size) noexcept nogil
# Python is done with a job of this connection: write its answer. CLOSED: close the connection.
cdef Status gate_answer(IoLoop* loop, Conn* conn, PolicyJob* job) noexcept nogil
# The socket was closed: Python forgets its session. Called again when its last job comes back.
cdef void gate_closed(IoLoop* loop, Conn* conn) noexcept nogil
