"""The adds in flight on one connection, from all senders, by the ids that a response carries.

Consecutive ids share a block, and a hash table finds the blocks. A sender is one source of adds; its number counts from
1. Its ids may have gaps, and come again when an ensemble changes. No lock: one event loop owns the table, or the lock
of a channel's connection guards it. An add takes at most 480 bytes, and 32 if all ids of its block are in flight;
it is freed with the table.
"""
from libc.stdint cimport int32_t, int64_t

from bookie._fast.client.framing_v2 cimport Response

cdef enum:
    NOBODY = -1                  # the sender of an add whose response is not wanted any more
    BLOCK_SHIFT = 4
    BLOCK_IDS = 1 << BLOCK_SHIFT

cdef struct Add:
    int64_t entry
    int64_t due_ms
    int32_t sender               # 0: not in flight

cdef struct Block:               # the adds with BLOCK_IDS consecutive ids, the first of which is number * BLOCK_IDS
    int64_t ledger               # V2: the ids are entries of this ledger; V3: 0, they are transactions
    int64_t number
    int64_t count                # of adds in flight; a block without any is spare
    Add adds[BLOCK_IDS]
    Block* next                  # of the spare ones

cdef class AddsInFlight:
    cdef bint by_transaction     # V3
    cdef int32_t op              # of a response to an add, in this protocol
    cdef Block** places          # open addressing, linear probing
    cdef int64_t mask
    cdef int64_t blocks
    cdef Block* last             # found last, or NULL
    cdef Block* spare            # blocks without adds, to be used again
    cdef readonly int64_t count

    # Return the block with an id, or NULL if none of its adds is in flight.
    cdef Block* block_of(self, int64_t ledger, int64_t id) noexcept nogil

    # Record that an entry was sent, in V3 as this transaction.
    cdef int put(self, int32_t sender, int64_t ledger, int64_t entry, int64_t transaction, int64_t due_ms) except -1
    cdef Block* new_block(self, int64_t ledger, int64_t id) except NULL
    cdef void remove_block(self, int64_t place) noexcept nogil
    cdef int grow(self) except -1

    # If the add to which a response belongs is in flight, remove it, copy it to `add`, and return True.
    cdef bint answered(self, const Response* row, Add* add) noexcept nogil

    # Take responses to adds out of the rows, move the other rows to the front, and return their number. Responses
    # that a sender waits for are written to senders, entries and codes, *taken of them. A response to an unknown add
    # stays in the rows.
    cdef int64_t take_rows(self, Response* rows, int64_t count, int32_t* senders, int64_t* entries, int32_t* codes,
                           int64_t* taken) noexcept nogil
