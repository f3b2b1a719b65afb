"""A hash table from ids in responses to adds. A response is matched to an add once; others stay in the table of rows.
"""
from libc.stdint cimport uint8_t, uint64_t
from libc.stdlib cimport calloc, free

import numpy as np

from bookie._fast.wire.request cimport ADD_ENTRY
from bookie._fast.wire.v2 cimport OP_ADD

cdef enum:
    PLACES_MIN = 1024


cdef inline uint64_t mixed(int64_t ledger, int64_t name) noexcept nogil:
    cdef uint64_t x = <uint64_t> ledger * 0x9E3779B97F4A7C15u + <uint64_t> name
    x = (x ^ (x >> 32)) * 0xD6E8FEB86659FD93u
    return x ^ (x >> 32)


cdef class AddsInFlight:
    """The adds in flight on one connection. Responses carry the transaction if `by_transaction` (V3), else ledger and
    entry.
    """

    def __cinit__(self, *, bint by_transaction):
        self.by_transaction = by_transaction
        self.op = ADD_ENTRY if by_transaction else OP_ADD
        self.places = <Add*> calloc(PLACES_MIN, sizeof(Add))
        if self.places == NULL:
            raise MemoryError
        self.mask = PLACES_MIN - 1

    def __dealloc__(self):
        free(self.places)

    cdef int64_t find(self, int64_t ledger, int64_t name) noexcept nogil:
        cdef int64_t at = <int64_t> (mixed(ledger, name) & <uint64_t> self.mask)
        while self.places[at].sender != 0 and (self.places[at].ledger != ledger or self.places[at].name != name):
            at = (at + 1) & self.mask
        return at

    cdef void remove(self, int64_t place) noexcept nogil:
        """Free the place, and move back the adds that probing would no longer find after the gap."""
        cdef int64_t at = place
        cdef int64_t home
        while True:
            at = (at + 1) & self.mask
            if self.places[at].sender == 0:
                break
            home = <int64_t> (mixed(self.places[at].ledger, self.places[at].name) & <uint64_t> self.mask)
            if ((at - home) & self.mask) >= ((at - place) & self.mask):
                self.places[place] = self.places[at]
                place = at
        self.places[place].sender = 0
        self.count -= 1

    cdef int grow(self, int64_t more) except -1:
        cdef int64_t size = self.mask + 1
        cdef Add* old = self.places
        cdef int64_t old_size = size
        cdef int64_t k
        while size < 2 * (self.count + more):
            size *= 2
        if size == old_size:
            return 0
        self.places = <Add*> calloc(size, sizeof(Add))
        if self.places == NULL:
            self.places = old
            raise MemoryError
        self.mask = size - 1
        for k in range(old_size):
            if old[k].sender != 0:
                self.places[self.find(old[k].ledger, old[k].name)] = old[k]
        free(old)
        return 0

    def knows(self, int64_t ledger, const int64_t[::1] entries):
        """Return whether one of these adds has the ids of an add in flight, so that responses could be confused.
        False in V3.
        """
        cdef int64_t k
        if self.by_transaction or self.count == 0:
            return False
        for k in range(entries.shape[0]):
            if self.places[self.find(ledger, entries[k])].sender != 0:
                return True
        return False

    def sent(self, int32_t sender, int64_t ledger, const int64_t[::1] entries, int64_t transaction, int64_t due_ms):
        """Record that these entries were sent for `sender`, in V3 entries[k] as transaction + k. `knows` must be False
        for them.
        """
        cdef int64_t k, at, first, name
        if sender < 1:
            raise ValueError(f"sender is {sender}; senders have numbers from 1 on")
        self.grow(entries.shape[0])
        for k in range(entries.shape[0]):
            first = transaction + k if self.by_transaction else ledger
            name = 0 if self.by_transaction else entries[k]
            at = self.find(first, name)
            self.count += self.places[at].sender == 0
            self.places[at].ledger, self.places[at].name = first, name
            self.places[at].entry = entries[k]
            self.places[at].due_ms = due_ms
            self.places[at].sender = sender

    cdef int64_t take_rows(self, Response* rows, int64_t count, int32_t* senders, int64_t* entries, int32_t* codes,
                           int64_t* taken) noexcept nogil:
        cdef int64_t k, at
        cdef int64_t left = 0
        taken[0] = 0
        for k in range(count):
            if rows[k].op == self.op:
                at = self.find(rows[k].request_id if self.by_transaction else rows[k].ledger,
                               0 if self.by_transaction else rows[k].entry)
                if self.places[at].sender != 0:
                    if self.places[at].sender != NOBODY:
                        senders[taken[0]] = self.places[at].sender
                        entries[taken[0]] = self.places[at].entry
                        codes[taken[0]] = rows[k].code
                        taken[0] += 1
                    self.remove(at)
                    continue
            if left != k:
                rows[left] = rows[k]
            left += 1
        return left

    def take(self, rows, int64_t count):
        """Take the responses to these adds out of the first `count` rows, and move the other rows to the front.

        Returns (number of other rows, senders, entries, codes); the arrays are in order of arrival, codes are the
        protocol's.
        """
        cdef uint8_t[::1] table = rows.view(np.uint8)
        cdef int32_t[::1] senders, codes
        cdef int64_t[::1] entries
        cdef int64_t taken, left
        if count > table.shape[0] // <int64_t> sizeof(Response):
            raise ValueError(f"count is {count}; the table has fewer rows")
        senders_found = np.empty(max(count, 1), dtype=np.int32)
        codes_found = np.empty(max(count, 1), dtype=np.int32)
        entries_found = np.empty(max(count, 1), dtype=np.int64)
        senders, codes, entries = senders_found, codes_found, entries_found
        if count <= 0:
            return 0, senders_found[:0], entries_found[:0], codes_found[:0]
        with nogil:
            left = self.take_rows(<Response*> &table[0], count, &senders[0], &entries[0], &codes[0], &taken)
        return left, senders_found[:taken], entries_found[:taken], codes_found[:taken]

    def overdue(self, int64_t now_ms):
        """Return the senders with an add whose response is overdue."""
        cdef int64_t k
        senders = set()
        for k in range(self.mask + 1):
            if self.places[k].sender > 0 and self.places[k].due_ms <= now_ms:
                senders.add(self.places[k].sender)
        return sorted(senders)

    def leave(self, int32_t sender):
        """Stop waiting for the responses of a sender. In V2 the ids of its adds stay in use until their responses
        arrive.
        """
        cdef int64_t k = 0
        if self.count == 0:
            return
        if not self.by_transaction:
            for k in range(self.mask + 1):
                if self.places[k].sender == sender:
                    self.places[k].sender = NOBODY
            return
        while k <= self.mask:
            if self.places[k].sender == sender:
                self.remove(k)  # another add may have moved to this place
            else:
                k += 1
