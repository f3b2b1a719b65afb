"""How much of what a peer asks may be under way at a time. Runs on the connection's I/O loop.

Two answers to too much, as upstream has them: refuse the request (`admission`), or read no further for a while
(`hold_back`). Fencing reads and requests of high priority, which recoveries consist of, have room of their own above
that of others: a flood of adds keeps no ledger from being closed, and a flood of fences has an end.

High priority is a bit that anybody sets. Where clients log in, that room is for those who may write. Elsewhere an
address has a share of it: with so many urgent requests under way, further ones of it are like any other.
"""
from libc.stdint cimport uint32_t

from bookie._fast.base.types cimport Status
from bookie._fast.server.connection cimport Conn
from bookie._fast.server.loop_state cimport IoLoop
from bookie._fast.wire.request cimport Request

# OK, or TOO_MANY_REQUESTS. Sets URGENT of a request that goes before others.
cdef Status admission(IoLoop* loop, const Conn* conn, Request* request) noexcept nogil
# Something of these flags begins or ends to wait for a journal or a disk: it counts where it is URGENT.
cdef void urgent_begins(Conn* conn, uint32_t flags) noexcept nogil
cdef void urgent_ends(Conn* conn, uint32_t flags) noexcept nogil
# Nothing of the connection counts any more, which is about to lose its address.
cdef void urgent_leaves(Conn* conn) noexcept nogil
# True: so much is under way in this loop that the connection waits, as one that found no room, until some is done.
cdef bint hold_back(IoLoop* loop, Conn* conn) noexcept nogil
