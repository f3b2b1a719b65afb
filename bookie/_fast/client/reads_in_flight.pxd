"""The unanswered single reads of one connection: their answers go to the runs that they belong to.

No lock: one event loop owns it. 64 bytes a read at most.
"""
from libc.stdint cimport int64_t, uint8_t

from bookie._fast.client.adds_in_flight cimport AddsInFlight
from bookie._fast.client.framing_v2 cimport Response
from bookie._fast.client.read_run cimport ReadRun

cdef class ReadsInFlight(AddsInFlight):
    cdef dict runs                       # by lane: one for each `ask`

    cdef int deliver(self, ReadRun run, int64_t entry, const Response* row, const uint8_t[::1] received,
                     int64_t bytes_max) except -1
