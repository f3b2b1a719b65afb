"""The single reads in flight on one connection; their responses go to the ReadRuns that they belong to.

No lock: one event loop owns it. It takes as much memory for each read as `adds_in_flight` does for an add.
"""
from libc.stdint cimport int64_t, uint8_t

from bookie._fast.client.adds_in_flight cimport AddsInFlight
from bookie._fast.client.framing_v2 cimport Response
from bookie._fast.client.read_run cimport ReadRun

cdef class ReadsInFlight(AddsInFlight):
    cdef dict runs                       # ReadRun by sender

    cdef int deliver(self, ReadRun run, int64_t entry, const Response* row, const uint8_t[::1] received,
                     int64_t bytes_max) except -1
