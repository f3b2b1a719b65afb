"""How much of what a peer asks may be under way at a time. Runs on the connection's I/O loop.

Two answers to too much, as upstream has them: refuse the request (`admission`), or read no further for a while
(`hold_back`). Fencing reads and requests of high priority, which recoveries consist of, have room of their own above
that of others: a flood of adds keeps no ledger from being closed, and a flood of fences has an end.
"""
from libc.stdint cimport int64_t

from bookie._fast.connection cimport Conn
from bookie._fast.loop_state cimport IoLoop
from bookie._fast.request cimport Request
from bookie._fast.types cimport Status

# OK, or TOO_MANY_REQUESTS.
cdef Status admission(IoLoop* loop, const Conn* conn, const Request* request) noexcept nogil
# True: so much is under way in this loop that the connection waits, as one that found no room, until some is done.
cdef bint hold_back(IoLoop* loop, Conn* conn) noexcept nogil
