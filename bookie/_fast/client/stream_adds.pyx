"""Adds of streams in the table of `adds_in_flight`. A response is matched once; others stay in the table of rows."""
from libc.stdint cimport INT64_MAX, int32_t, int64_t, uint8_t

import numpy as np

from bookie._fast.base.sync cimport now_ns
from bookie._fast.client.add_window cimport AddWindow
from bookie._fast.client.adds_in_flight cimport NOBODY, Add
from bookie._fast.client.framing_v2 cimport Response


cdef class StreamAdds(AddsInFlight):
    """The adds in flight of all streams on one connection. Responses carry the transaction if `by_transaction` (V3),
    else ledger and entry.
    """

    def __cinit__(self, *, bint by_transaction):
        self.windows = {}

    def open(self, AddWindow window):
        """Pass the responses to adds of the window's sender to the window, until it leaves."""
        self.windows[window.sender] = window

    def send(self, AddWindow window, int64_t count, int64_t transaction):
        """Record that the next `count` entries of the window are sent now, in V3 as transaction, transaction + 1, ...

        ValueError if the window has no room for them.
        """
        cdef int64_t first = window.end
        cdef int64_t k
        window.sent(count)
        for k in range(count):
            self.put(window.sender, window.ledger, first + k, transaction + k, INT64_MAX)

    def leave(self, int32_t sender):
        """Pass no more responses to the sender's window. In V2 the ids stay in use until their responses arrive."""
        self.windows.pop(sender, None)
        AddsInFlight.leave(self, sender)

    def acknowledge(self, rows, int64_t count):
        """Pass the responses to these adds among the first `count` rows to their windows, and move the other rows to
        the front; return the number of other rows.
        """
        cdef uint8_t[::1] table = rows.view(np.uint8)
        cdef Response* row
        cdef int64_t now = now_ns()
        cdef int64_t k
        cdef int64_t left = 0
        cdef int32_t sender = 0
        cdef AddWindow window = None
        cdef Add add
        if count > table.shape[0] // <int64_t> sizeof(Response):
            raise ValueError(f"count is {count}; the table has fewer rows")
        if count <= 0:
            return 0
        row = <Response*> &table[0]
        with nogil:
            for k in range(count):
                if row[k].op == self.op and self.answered(row + k, &add):
                    if add.sender != NOBODY:
                        if add.sender != sender:
                            with gil:
                                if window is not None:
                                    window.advance()
                                window = self.windows[add.sender]
                                sender = add.sender
                        window.answer(add.entry, row[k].code, now)
                    continue
                if left != k:
                    row[left] = row[k]
                left += 1
            if sender != 0:
                window.advance()
        return left
