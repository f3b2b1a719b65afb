"""The lines of an I/O loop: connections with requests to serve, first come, first served, a bounded turn each.

A connection is in one line at most. One that is closed there stays until it is taken off; who takes it releases it.
Runs on the loop's thread.
"""
from libc.stdint cimport int64_t, uint64_t

from bookie._fast.server.connection cimport Conn
from bookie._fast.server.loop_state cimport IoLoop
from bookie._fast.server.turn cimport Line

cdef enum:
    ROUND_COST = 1 << 19     # served in a round of the loop: how long others wait for it to look at its sockets
    ALONE_COST = 1 << 21     # the same while only one has anything to serve
    TURN_COST = 1 << 16      # for one connection while there are others
    FRESH_COST = 1 << 14     # the same for those who had nothing to do: they go first as long as they ask for little
    REQUEST_COST = 512       # what serving a request takes beside its bytes, as bytes take

# It has something to serve: to the end of the line of those who are fresh, or who are busy where it owes for earlier
# turns. Nothing happens where it waits already, or is not served now.
cdef void turns_enter(IoLoop* loop, Conn* conn) noexcept nogil
# To the end of this line; it is in none.
cdef void turns_wait(IoLoop* loop, Conn* conn, Line line) noexcept nogil
# The first one of the line, off it; NULL: there is none. Closed ones are released on the way.
cdef Conn* turns_next(IoLoop* loop, Line line) noexcept nogil
# Whether nobody waits to be served.
cdef bint turns_none(const IoLoop* loop) noexcept nogil
# Its turn begins: `most` of what it asks for may be served, less what it owes, or ALONE_COST where nobody else waits.
# False: it owes more than that.
cdef bint turn_begin(IoLoop* loop, Conn* conn, int64_t most) noexcept nogil
# A request of so many bytes was served; its answers are known.
cdef void turn_spend(Conn* conn, uint64_t size) noexcept nogil
# Nobody waits: debts end.
cdef void turns_calm(IoLoop* loop) noexcept nogil
