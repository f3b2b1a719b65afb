"""Which connections a loop owns.

A Conn lives until its socket is closed and the last answer that refers to it has come.
"""
from bookie._fast.connection cimport Conn
from bookie._fast.loop_state cimport IoLoop

# One reference less; the last one frees.
cdef void release(Conn* conn) noexcept nogil
cdef void close_conn(IoLoop* loop, Conn* conn) noexcept nogil
# Its output is written at the end of the round.
cdef void mark_dirty(IoLoop* loop, Conn* conn) noexcept nogil
cdef void arm(IoLoop* loop, Conn* conn) noexcept nogil
cdef void accept_some(IoLoop* loop) noexcept nogil
# Connections that another loop accepted for this one.
cdef void take_handed(IoLoop* loop) noexcept nogil
