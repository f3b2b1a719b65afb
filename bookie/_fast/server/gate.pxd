"""What a connection may request before and after authentication, and the way of its frames to Python and back.

Runs on the connection's I/O loop. A connection begins in state OPEN if no authentication is configured, else in
WAITING; Python makes it DONE (module server.limits). While Python works on its authentication it is `gated`: none of
its further frames is looked at before the outcome is known. Afterwards it may do what its user has a right to (module
`users`); a connection with all rights does not come here.
"""
from libc.stdint cimport uint8_t, uint32_t

from bookie._fast.base.types cimport Status
from bookie._fast.server.connection cimport Conn
from bookie._fast.server.loop_state cimport IoLoop
from bookie._fast.server.policy cimport PolicyJob
from bookie._fast.wire.request cimport Request

# Check a request of a connection without all rights. OK: serve it. PENDING: Python has it, the connection is gated.
# UNAUTHORIZED: answer that, and close the connection if its reason (`why`) is set. CLOSED: close the connection.
cdef Status gate_admit(IoLoop* loop, Conn* conn, const Request* request, bint parsed, const uint8_t* frame,
                       uint32_t size) noexcept nogil
# Pass this request to Python. OK, or TOO_MANY_REQUESTS.
cdef Status gate_submit(IoLoop* loop, Conn* conn, const Request* request, const uint8_t* frame,
                        uint32_t size) noexcept nogil
# Call when the connection has become encrypted. It is WAITING until Python has decided what counts of its login in
# clear; `certificate` (DER) is the peer's, or NULL. CLOSED: close the connection.
cdef Status gate_upgraded(IoLoop* loop, Conn* conn, const uint8_t* certificate, uint32_t size) noexcept nogil
# Write the response of a job that Python has finished. CLOSED: close the connection.
cdef Status gate_answer(IoLoop* loop, Conn* conn, PolicyJob* job) noexcept nogil
# Tell Python to forget the session of a closed connection. Called again when its last job comes back.
cdef void gate_closed(IoLoop* loop, Conn* conn) noexcept nogil
