"""The one message that a client may send in clear after START_TLS: AUTH, which Java's client sends in the same
segment.

It stays at the head of the connection's held input until the handshake is complete, and is answered encrypted. The
sender need not be the peer that completes the handshake: module `server.gate` marks the message for Python, which
knows whether that matters. Runs on the connection's I/O loops: first the clear one, then the encrypted one.
"""
from libc.stdint cimport uint8_t, uint32_t, uint64_t

from bookie._fast.base.types cimport Status
from bookie._fast.server.connection cimport Conn
from bookie._fast.server.loop_state cimport IoLoop

cdef enum ClearAuth:
    CLEAR_NONE = 0               # input is not a message in clear
    CLEAR_AWAITED = 1            # START_TLS granted, no TLS byte has come: a message may come, or is held in part
    CLEAR_HELD = 2               # a whole message is held and not served yet

# Examine the bytes after START_TLS. OK: the message, of `used` bytes; NEED_MORE: its beginning, or nothing; CLOSED:
# anything else.
cdef Status clear_scan(const IoLoop* loop, const uint8_t* data, uint64_t size, uint64_t* used) noexcept nogil
# Examine `size` bytes that the encrypted loop received in state CLEAR_AWAITED. OK: the first `used` of them, perhaps
# 0, were clear and are held. CLOSED: close the connection.
cdef Status clear_take(const IoLoop* loop, Conn* conn, const uint8_t* data, uint32_t size,
                       uint32_t* used) noexcept nogil
# Put START_TLS before a V2 AUTH if the input is these two frames, which Java's V2 client sends in either order. Once it
# has read an answer in V2, it takes the one to START_TLS for V2 as well and fails.
cdef void clear_put_behind(const IoLoop* loop, uint8_t* data, uint64_t size) noexcept nogil
