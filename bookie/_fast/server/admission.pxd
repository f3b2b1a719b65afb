"""Limits on the requests in progress. Runs on the connection's I/O loop.

There are two reactions to too many, as in Apache BookKeeper: refuse the request (`admission`), or stop reading from
the connection for a while (`hold_back`). Fencing reads and high-priority requests, which recoveries consist of, have
limits of their own above those of others: a flood of adds does not prevent a ledger from being closed, and a flood of
fences is bounded too.

High priority is a bit that any client may set. With authentication, the higher limits are for clients that may write.
Without, an address has a share of them: when it has that many urgent requests, further ones are treated like others.
"""
from libc.stdint cimport uint32_t

from bookie._fast.base.types cimport Status
from bookie._fast.server.connection cimport Conn
from bookie._fast.server.loop_state cimport IoLoop
from bookie._fast.wire.request cimport Request

# Return OK or TOO_MANY_REQUESTS. Sets the flag URGENT of a request that may use the higher limits.
cdef Status admission(IoLoop* loop, const Conn* conn, Request* request) noexcept nogil
# Call when a request with these flags begins or ends to wait for a journal or a disk; it is counted if it is URGENT.
cdef void urgent_begins(Conn* conn, uint32_t flags) noexcept nogil
cdef void urgent_ends(Conn* conn, uint32_t flags) noexcept nogil
# Stop counting all requests of a connection that is about to leave its address.
cdef void urgent_leaves(Conn* conn) noexcept nogil
# Return True if this loop has so many requests in progress that the connection has to wait, like a stalled one.
cdef bint hold_back(IoLoop* loop, Conn* conn) noexcept nogil
