"""An I/O loop: epoll over the connections that it owns (state: `loop_state`). One thread runs one loop."""
from bookie._fast.server.limits cimport PortLimits
from bookie._fast.server.loop_state cimport IoLoop

cdef class IoLoopRunner:
    cdef IoLoop loop
    cdef object stores_room
    cdef object pool_room
    cdef object policy_room
    cdef object tls_room
    cdef object access_room
    cdef PortLimits limits_room
