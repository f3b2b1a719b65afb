"""Which connections a loop owns.

A Conn lives until its socket is closed and the last answer that refers to it has come.
"""
from bookie._fast.server.addresses cimport Address
from bookie._fast.server.connection cimport Conn
from bookie._fast.server.loop_state cimport IoLoop
from bookie._fast.server.rejections cimport Reason

# Drop one reference; the last one frees.
cdef void release(Conn* conn) noexcept nogil
# Count one connection less, in all and of its address.
cdef void leave(IoLoop* loop, Address* address) noexcept nogil
# Put a connection into the loop's list and its epoll, or take it out. False: epoll refused it.
cdef bint link(IoLoop* loop, Conn* conn) noexcept nogil
cdef void unlink(IoLoop* loop, Conn* conn) noexcept nogil
# A handshake has come to an end, good or bad; the connection is still open.
cdef void handshake_over(IoLoop* loop, Conn* conn) noexcept nogil
cdef void close_conn(IoLoop* loop, Conn* conn) noexcept nogil
# Close an open connection whose peer broke a rule; the log will say which.
cdef void close_bad(IoLoop* loop, Conn* conn, Reason reason) noexcept nogil
# Close a connection that could not be served: for the reason it noted, or `otherwise`; without one if its peer hung up.
cdef void close_failed(IoLoop* loop, Conn* conn, Reason otherwise) noexcept nogil
