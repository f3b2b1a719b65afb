"""The limits of the data port and the counters that all I/O loops share, as Python sets and reads them."""
from bookie._fast.server.limits cimport NetLimits

cdef class NetLimitsRoom:
    cdef NetLimits limits
