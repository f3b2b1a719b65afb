"""Closes connections that did not log in in time, that are idle, or whose user was revoked."""
from bookie._fast.server.loop_state cimport IoLoop

# Close connections that are late with their login or idle for too long, if a check is due.
cdef void close_late(IoLoop* loop) noexcept nogil
# Close connections whose user was revoked since the last check.
cdef void close_revoked(IoLoop* loop) noexcept nogil
