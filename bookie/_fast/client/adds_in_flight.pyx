"""A hash table of blocks of ids. A response is matched to an add once; others stay in the table of rows."""
from libc.stdint cimport uint8_t, uint64_t
from libc.stdlib cimport calloc, free

import numpy as np

from bookie._fast.wire.request cimport ADD_ENTRY
from bookie._fast.wire.v2 cimport OP_ADD

cdef enum:
    PLACES_MIN = 256


cdef inline uint64_t mixed(int64_t ledger, int64_t number) noexcept nogil:
    cdef uint64_t x = <uint64_t> ledger * 0x9E3779B97F4A7C15u + <uint64_t> number
    x = (x ^ (x >> 32)) * 0xD6E8FEB86659FD93u
    return x ^ (x >> 32)


cdef class AddsInFlight:
    """The adds in flight on one connection. Responses carry the transaction if `by_transaction` (V3), else ledger and
    entry.
    """

    def __cinit__(self, *, bint by_transaction):
        self.by_transaction = by_transaction
        self.op = ADD_ENTRY if by_transaction else OP_ADD
        self.places = <Block**> calloc(PLACES_MIN, sizeof(Block*))
        if self.places == NULL:
            raise MemoryError
        self.mask = PLACES_MIN - 1

    def __dealloc__(self):
        cdef int64_t at
        cdef Block* block
        if self.places != NULL:
            for at in range(self.mask + 1):
                free(self.places[at])
            free(self.places)
        while self.spare != NULL:
            block = self.spare
            self.spare = block.next
            free(block)

    cdef Block* block_of(self, int64_t ledger, int64_t id) noexcept nogil:
        cdef int64_t number = id >> BLOCK_SHIFT
        cdef Block* block = self.last
        cdef int64_t at
        if block != NULL and block.number == number and block.ledger == ledger:
            return block
        at = <int64_t> (mixed(ledger, number) & <uint64_t> self.mask)
        while True:
            block = self.places[at]
            if block == NULL or (block.number == number and block.ledger == ledger):
                self.last = block
                return block
            at = (at + 1) & self.mask

    cdef int put(self, int32_t sender, int64_t ledger, int64_t entry, int64_t transaction, int64_t due_ms) except -1:
        cdef int64_t id = transaction if self.by_transaction else entry
        cdef int64_t of = 0 if self.by_transaction else ledger
        cdef Block* block = self.block_of(of, id)
        cdef Add* add
        if block == NULL:
            block = self.new_block(of, id)
        add = &block.adds[id & (BLOCK_IDS - 1)]
        if add.sender == 0:
            block.count += 1
            self.count += 1
        add.entry, add.due_ms, add.sender = entry, due_ms, sender
        return 0

    cdef Block* new_block(self, int64_t ledger, int64_t id) except NULL:
        cdef Block* block
        cdef int64_t at
        self.grow()
        if self.spare != NULL:
            block = self.spare
            self.spare = block.next
        else:
            block = <Block*> calloc(1, sizeof(Block))
            if block == NULL:
                raise MemoryError
        block.ledger, block.number = ledger, id >> BLOCK_SHIFT
        at = <int64_t> (mixed(ledger, block.number) & <uint64_t> self.mask)
        while self.places[at] != NULL:
            at = (at + 1) & self.mask
        self.places[at] = self.last = block
        self.blocks += 1
        return block

    cdef void remove_block(self, int64_t place) noexcept nogil:
        """Make the block spare, and move back the blocks that probing would no longer find after the gap."""
        cdef int64_t at = place
        cdef int64_t home
        self.places[place].next = self.spare
        self.spare = self.places[place]
        while True:
            at = (at + 1) & self.mask
            if self.places[at] == NULL:
                break
            home = <int64_t> (mixed(self.places[at].ledger, self.places[at].number) & <uint64_t> self.mask)
            if ((at - home) & self.mask) >= ((at - place) & self.mask):
                self.places[place] = self.places[at]
                place = at
        self.places[place] = NULL
        self.last = NULL
        self.blocks -= 1

    cdef int grow(self) except -1:
        """Make room for another block: at least half of the places stay free."""
        cdef int64_t size = 2 * (self.mask + 1)
        cdef Block** old = self.places
        cdef int64_t k, at
        if 2 * (self.blocks + 1) <= self.mask + 1:
            return 0
        self.places = <Block**> calloc(size, sizeof(Block*))
        if self.places == NULL:
            self.places = old
            raise MemoryError
        self.mask = size - 1
        for k in range(size // 2):
            if old[k] != NULL:
                at = <int64_t> (mixed(old[k].ledger, old[k].number) & <uint64_t> self.mask)
                while self.places[at] != NULL:
                    at = (at + 1) & self.mask
                self.places[at] = old[k]
        free(old)
        return 0

    def knows(self, int64_t ledger, const int64_t[::1] entries):
        """Return whether one of these adds has the ids of an add in flight, so that responses could be confused.
        False in V3.
        """
        cdef int64_t k
        cdef Block* block
        if self.by_transaction or self.count == 0:
            return False
        for k in range(entries.shape[0]):
            block = self.block_of(ledger, entries[k])
            if block != NULL and block.adds[entries[k] & (BLOCK_IDS - 1)].sender != 0:
                return True
        return False

    def knows_from(self, int64_t ledger, int64_t first):
        """Return whether an add of this ledger with entry `first` or a higher one is in flight. False in V3."""
        cdef int64_t at, k
        cdef Block* block
        if self.by_transaction or self.count == 0:
            return False
        for at in range(self.mask + 1):
            block = self.places[at]
            if block != NULL and block.ledger == ledger:
                for k in range(BLOCK_IDS):
                    if block.adds[k].sender != 0 and block.adds[k].entry >= first:
                        return True
        return False

    def sent(self, int32_t sender, int64_t ledger, const int64_t[::1] entries, int64_t transaction, int64_t due_ms):
        """Record that these entries were sent for `sender`, in V3 entries[k] as transaction + k. `knows` must be False
        for them.
        """
        cdef int64_t k
        if sender < 1:
            raise ValueError(f"sender is {sender}; senders have numbers from 1 on")
        for k in range(entries.shape[0]):
            self.put(sender, ledger, entries[k], transaction + k, due_ms)

    cdef bint answered(self, const Response* row, Add* add) noexcept nogil:
        cdef int64_t id = row.request_id if self.by_transaction else row.entry
        cdef Block* block = self.block_of(0 if self.by_transaction else row.ledger, id)
        cdef Add* found
        cdef int64_t at
        if block == NULL:
            return False
        found = &block.adds[id & (BLOCK_IDS - 1)]
        if found.sender == 0:
            return False
        add[0] = found[0]
        found.sender = 0
        self.count -= 1
        block.count -= 1
        if block.count == 0:
            at = <int64_t> (mixed(block.ledger, block.number) & <uint64_t> self.mask)
            while self.places[at] != block:
                at = (at + 1) & self.mask
            self.remove_block(at)
        return True

    cdef int64_t take_rows(self, Response* rows, int64_t count, int32_t* senders, int64_t* entries, int32_t* codes,
                           int64_t* taken) noexcept nogil:
        cdef int64_t k
        cdef int64_t left = 0
        cdef Add add
        taken[0] = 0
        for k in range(count):
            if rows[k].op == self.op and self.answered(&rows[k], &add):
                if add.sender != NOBODY:
                    senders[taken[0]] = add.sender
                    entries[taken[0]] = add.entry
                    codes[taken[0]] = rows[k].code
                    taken[0] += 1
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
        cdef int64_t at, k
        cdef Add* add
        senders = set()
        for at in range(self.mask + 1):
            if self.places[at] == NULL:
                continue
            for k in range(BLOCK_IDS):
                add = &self.places[at].adds[k]
                if add.sender > 0 and add.due_ms <= now_ms:
                    senders.add(add.sender)
        return sorted(senders)

    def leave(self, int32_t sender):
        """Stop waiting for the responses of a sender. In V2 the ids of its adds stay in use until their responses
        arrive.
        """
        cdef int64_t k
        cdef int64_t at = 0
        cdef Block* block
        while self.count and at <= self.mask:
            block = self.places[at]
            if block == NULL:
                at += 1
                continue
            for k in range(BLOCK_IDS):
                if block.adds[k].sender == sender:
                    block.adds[k].sender = NOBODY if not self.by_transaction else 0
                    block.count -= self.by_transaction
                    self.count -= self.by_transaction
            if block.count == 0:
                self.remove_block(at)  # another block may have moved to this place
            else:
                at += 1
