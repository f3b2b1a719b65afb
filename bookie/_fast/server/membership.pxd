"""The connections of an I/O loop: the list of open ones, and closing. Runs on the loop's thread.

A Conn exists until its socket is closed and the last response that refers to it has arrived.
"""
from bookie._fast.server.addresses cimport Address
from bookie._fast.server.connection cimport Conn
from bookie._fast.server.loop_state cimport IoLoop
from bookie._fast.server.rejections cimport Reason

# Count the end of a connection, in total and for its address.
cdef void leave(IoLoop* loop, Address* address) noexcept nogil
# Add a connection to the loop's list and epoll, or remove it. `link` returns False if epoll refuses it.
cdef bint link(IoLoop* loop, Conn* conn) noexcept nogil
cdef void unlink(IoLoop* loop, Conn* conn) noexcept nogil
# Count the end of a handshake, successful or not. The connection is still open.
cdef void handshake_over(IoLoop* loop, Conn* conn) noexcept nogil
# Close the socket. Does nothing if it is closed.
cdef void close_conn(IoLoop* loop, Conn* conn) noexcept nogil
# Close the open connection of a peer that broke a rule, and note the reason for the log.
cdef void close_bad(IoLoop* loop, Conn* conn, Reason reason) noexcept nogil
# Close a connection whose serving returned CLOSED, for its noted reason or else `otherwise`; without a reason if the
# peer closed it.
cdef void close_failed(IoLoop* loop, Conn* conn, Reason otherwise) noexcept nogil
