"""The unanswered adds of one connection, whatever lanes they came from: found by the name that an answer gives them.

No lock: one event loop owns it. 64 bytes an add at most; memory is freed with the object.
"""
from libc.stdint cimport int32_t, int64_t

from bookie._fast.client.framing_v2 cimport Response

cdef enum:
    NOBODY = -1                  # the lane of an add whose answer nobody waits for

cdef struct Add:
    int64_t ledger               # V3: the transaction
    int64_t name                 # V2: the entry; V3: 0
    int64_t entry
    int64_t due_ms
    int32_t lane                 # 0: the place is free

cdef class AddsInFlight:
    cdef bint by_transaction     # V3
    cdef int32_t op              # of an answer to an add, in this protocol
    cdef Add* places             # open addressing, linear probing
    cdef int64_t mask
    cdef readonly int64_t count

    # The place of an add, or the free one where it would go.
    cdef int64_t find(self, int64_t ledger, int64_t name) noexcept nogil
    cdef void remove(self, int64_t place) noexcept nogil
    cdef int grow(self, int64_t more) except -1

    # Take answers to adds out of the rows: what is left moves to the front; returns how many that is. Answers that
    # somebody waits for go to lanes, entries and codes, *taken of them. An answer to no add of ours stays.
    cdef int64_t take_rows(self, Response* rows, int64_t count, int32_t* lanes, int64_t* entries, int32_t* codes,
                           int64_t* taken) noexcept nogil
