"""The adds in flight on one connection, from all senders: a hash table by the ids that a response carries.

A sender is one source of adds; its number counts from 1. Its ids have gaps, and come again when an ensemble changes,
which the array of `add_window`, for one stream of consecutive ids, could not hold. No lock: one event loop owns the
table. It takes at most 64 bytes for each add, which are freed with the object.
"""
from libc.stdint cimport int32_t, int64_t

from bookie._fast.client.framing_v2 cimport Response

cdef enum:
    NOBODY = -1                  # the sender of an add whose response is not wanted any more

cdef struct Add:
    int64_t ledger               # V2: the ledger; V3: the transaction
    int64_t name                 # V2: the entry; V3: 0
    int64_t entry
    int64_t due_ms
    int32_t sender               # 0: this place is free

cdef class AddsInFlight:
    cdef bint by_transaction     # V3
    cdef int32_t op              # of a response to an add, in this protocol
    cdef Add* places             # open addressing, linear probing
    cdef int64_t mask
    cdef readonly int64_t count

    # Return the place of an add, or the free place where it would be put.
    cdef int64_t find(self, int64_t ledger, int64_t name) noexcept nogil
    cdef void remove(self, int64_t place) noexcept nogil
    cdef int grow(self, int64_t more) except -1

    # Take responses to adds out of the rows, move the other rows to the front, and return their number. Responses
    # that a sender waits for are written to senders, entries and codes, *taken of them. A response to an unknown add
    # stays in the rows.
    cdef int64_t take_rows(self, Response* rows, int64_t count, int32_t* senders, int64_t* entries, int32_t* codes,
                           int64_t* taken) noexcept nogil
