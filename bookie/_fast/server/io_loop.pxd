"""An I/O loop: epoll over the connections it owns (state: `loop_state`). One thread runs one loop."""
from bookie._fast.server.loop_state cimport IoLoop
from bookie._fast.server.net_limits cimport NetLimitsRoom

cdef class IoLoopRoom:
    cdef IoLoop loop
    cdef object stores_room
    cdef object pool_room
    cdef object policy_room
    cdef object tls_room
    cdef object access_room
    cdef NetLimitsRoom limits_room
