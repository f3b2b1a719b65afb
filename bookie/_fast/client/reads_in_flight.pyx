"""Names of reads to runs of answers, a table at a time. An answer is taken once; whatever else comes stays."""
from libc.stdint cimport int32_t

import numpy as np

from bookie._fast.base.types cimport OK
from bookie._fast.client.adds_in_flight cimport NOBODY
from bookie._fast.client.read_run cimport MALFORMED, NO_ENTRY, TOO_LONG
from bookie._fast.client.single_reads cimport ReadAnswerV3, read_answer_v3
from bookie._fast.wire.request cimport READ_ENTRY
from bookie._fast.wire.v2 cimport OP_READ


cdef class ReadsInFlight(AddsInFlight):
    """`by_transaction`: answers name the transaction, as in V3; else ledger and entry, as in V2."""

    def __cinit__(self, *, bint by_transaction):
        self.op = READ_ENTRY if by_transaction else OP_READ
        self.runs = {}

    def ask(self, int32_t lane, ReadRun run, int64_t transaction, int64_t due_ms):
        """The reads of `run` went out, in V3 as transaction, transaction + 1, …; none is known (`knows`)."""
        self.sent(lane, run.ledger, run.entries, transaction, due_ms)
        self.runs[lane] = run

    def leave(self, int32_t lane):
        """The run of this lane gets no more answers. In V2 names stay taken until they are answered."""
        self.runs.pop(lane, None)
        AddsInFlight.leave(self, lane)

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
        """Take the answers to these reads out of the first `count` rows; others move to the front.

        How many others, and the lanes that have all their answers now: they have left. `received`: what `body_at`
        counts from. A body of more than `bytes_max` bytes is not looked at.
        """
        cdef uint8_t[::1] table = rows.view(np.uint8)
        cdef Response* row = <Response*> &table[0]
        cdef int64_t k, at
        cdef int64_t left = 0
        cdef int32_t lane
        cdef int32_t current = 0
        cdef ReadRun run = None
        cdef Response* here
        if count > table.shape[0] // <int64_t> sizeof(Response):
            raise ValueError(f"the table has no {count} rows")
        whole = []
        for k in range(count):
            here = row + k
            if here.op == self.op:
                at = self.find(here.request_id if self.by_transaction else here.ledger,
                               0 if self.by_transaction else here.entry)
                lane = self.places[at].lane
                if lane != 0:
                    if lane != NOBODY:
                        if lane != current:
                            run, current = self.runs[lane], lane
                        self.deliver(run, self.places[at].entry, here, received, bytes_max)
                        if run.left == 0:
                            whole.append(lane)
                    self.remove(at)
                    continue
            if left != k:
                row[left] = here[0]
            left += 1
        for lane in whole:
            del self.runs[lane]
        return left, whole
