"""The adds in flight of the streams on one connection; their responses go to the windows of the streams.

No lock: the lock of the connection guards it.
"""
from bookie._fast.client.adds_in_flight cimport AddsInFlight

cdef class StreamAdds(AddsInFlight):
    cdef dict windows                    # AddWindow by sender
