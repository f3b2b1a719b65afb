"""The one message that a client may send in clear behind START_TLS: AUTH, as upstream's does, in one segment with it.

It stays at the head of the connection's held input until the handshake is done and is answered encrypted. It was
written by somebody who need not be whoever ends the handshake: module `server.gate` marks it for Python, which knows
whether that matters. Runs on the connection's I/O loops: the clear one, then the encrypted one.
"""
from libc.stdint cimport uint8_t, uint32_t, uint64_t

from bookie._fast.base.types cimport Status
from bookie._fast.server.connection cimport Conn
from bookie._fast.server.loop_state cimport IoLoop

cdef enum ClearAuth:
    CLEAR_NONE = 0               # what arrives is no message in clear
    CLEAR_AWAITED = 1            # START_TLS is granted and no byte of TLS has come: it may come, or is held in part
    CLEAR_HELD = 2               # it is held, whole, and was not served yet

# What stands behind START_TLS. OK: the message, `used` bytes of these. NEED_MORE: its beginning, or nothing. CLOSED:
# anything else.
cdef Status clear_scan(const IoLoop* loop, const uint8_t* data, uint64_t size, uint64_t* used) noexcept nogil
# The encrypted loop received `size` bytes of an awaiting connection. OK: the first `used` of them were clear, and are
# held; none may be. CLOSED: close the connection.
cdef Status clear_take(const IoLoop* loop, Conn* conn, const uint8_t* data, uint32_t size,
                       uint32_t* used) noexcept nogil
