"""The lines of an I/O loop: connections with requests are served first come, first served, one bounded turn at a time.

A connection is in one line at most. If it is closed while in a line, it stays until it is taken off, and is released
then. Runs on the loop's thread.
"""
from libc.stdint cimport int64_t, uint64_t

from bookie._fast.server.connection cimport Conn
from bookie._fast.server.loop_state cimport IoLoop
from bookie._fast.server.turn cimport Line

cdef enum:
    ROUND_COST = 1 << 19     # work of a round, which limits how long the loop does not look at its sockets
    ALONE_COST = 1 << 21     # the same if only one connection has requests
    TURN_COST = 1 << 16      # work of one connection's turn while there are others
    FRESH_COST = 1 << 14     # the same for one without requests until now; those go first while they want little
    REQUEST_COST = 512       # the cost of a request besides its bytes

# Put a connection that has requests at the end of the line of fresh ones, or of busy ones if it is in debt. Nothing
# happens if it is in a line, or is not served now.
cdef void turns_enter(IoLoop* loop, Conn* conn) noexcept nogil
# Put a connection that is in no line at the end of this one.
cdef void turns_wait(IoLoop* loop, Conn* conn, Line line) noexcept nogil
# Take the first open connection off the line, or return NULL. Closed ones before it are released.
cdef Conn* turns_next(IoLoop* loop, Line line) noexcept nogil
# Return whether no connection waits to be served.
cdef bint turns_none(const IoLoop* loop) noexcept nogil
# Begin its turn with a credit of `most` less its debt, or ALONE_COST if no other connection waits. Return False if the
# debt is larger.
cdef bint turn_begin(IoLoop* loop, Conn* conn, int64_t most) noexcept nogil
# Charge a request of `size` bytes, and the responses written since.
cdef void turn_spend(Conn* conn, uint64_t size) noexcept nogil
# End all debts, because no connection waits.
cdef void turns_calm(IoLoop* loop) noexcept nogil
