"""Single reads in the table of `adds_in_flight`, by the ids in their responses. A response is matched once; others stay
in the table of rows.
"""
from libc.stdint cimport int32_t

import numpy as np

from bookie._fast.base.types cimport OK
from bookie._fast.client.adds_in_flight cimport NOBODY, Add
from bookie._fast.client.read_run cimport MALFORMED, NO_ENTRY, TOO_LONG
from bookie._fast.client.single_reads cimport ReadAnswerV3, read_answer_v3
from bookie._fast.wire.request cimport READ_ENTRY
from bookie._fast.wire.v2 cimport OP_READ


cdef class ReadsInFlight(AddsInFlight):
    """The single reads in flight on one connection. Responses carry the transaction if `by_transaction` (V3), else
    ledger and entry.
    """

    def __cinit__(self, *, bint by_transaction):
        self.op = READ_ENTRY if by_transaction else OP_READ
        self.runs = {}

    def ask(self, int32_t sender, ReadRun run, int64_t transaction, int64_t due_ms):
        """Record that the reads of `run` were sent, in V3 as transaction, transaction + 1, ...; `knows` must be False
        for them.
        """
        self.sent(sender, run.ledger, run.entries, transaction, due_ms)
        self.runs[sender] = run

    def leave(self, int32_t sender):
        """Pass no more responses to the run of this sender. In V2 the ids stay in use until their responses arrive."""
        self.runs.pop(sender, None)
        AddsInFlight.leave(self, sender)

    cdef int deliver(self, ReadRun run, int64_t entry, const Response* row, const uint8_t[::1] received,
                     int64_t bytes_max) except -1:
        cdef ReadAnswerV3 answer
        cdef int64_t place = run.place_of(entry)
        cdef const uint8_t* body = &received[0] + row.body_at if row.body_size else NULL
        if row.code:
            return run.put(place, row.code if row.code > 0 else MALFORMED, NULL, 0)
        if row.body_size > bytes_max:
            return run.put(place, TOO_LONG, NULL, 0)
        if not self.by_transaction:
            return run.put(place, 0, body, row.body_size)
        if body == NULL or read_answer_v3(body, row.body_size, &answer) != OK:
            return run.put(place, MALFORMED, NULL, 0)
        if answer.has_lac:
            run.saw_lac(answer.lac)
        return run.put(place, 0 if answer.entry != NULL else NO_ENTRY, answer.entry, answer.size)

    def pick(self, rows, int64_t count, const uint8_t[::1] received, int64_t bytes_max):
        """Take the responses to these reads out of the first `count` rows, and move the other rows to the front.

        Returns (number of other rows, senders that have all their responses); such senders have left. `received` is the
        buffer that `body_at` refers to. A body of more than `bytes_max` bytes counts as TOO_LONG and is not read.
        """
        cdef uint8_t[::1] table = rows.view(np.uint8)
        cdef Response* row = <Response*> &table[0] if table.shape[0] else NULL
        cdef int64_t k
        cdef int64_t left = 0
        cdef int32_t current = 0
        cdef Add read
        cdef ReadRun run = None
        cdef Response* here
        if count > table.shape[0] // <int64_t> sizeof(Response):
            raise ValueError(f"count is {count}; the table has fewer rows")
        whole = []
        for k in range(count):
            here = row + k
            if here.op == self.op and self.answered(here, &read):
                if read.sender != NOBODY:
                    if read.sender != current:
                        run, current = self.runs[read.sender], read.sender
                    self.deliver(run, read.entry, here, received, bytes_max)
                    if run.left == 0:
                        whole.append(read.sender)
                continue
            if left != k:
                row[left] = here[0]
            left += 1
        for sender in whole:
            del self.runs[sender]
        return left, whole
