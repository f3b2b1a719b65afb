"""A connection to one bookie on which the calling thread sends requests and receives their responses itself.

One thread at a time uses it; others may only call `shutdown` and `close`. Waiting and checking digests need no GIL. A
response is received into the memory that its entries stay in (module `client.answer_memory`), which is bounded by the
largest frame, or into a block of columns. Every response must belong to a request that is outstanding; anything else, a
time limit and a signal whose handler raises end the connection, so that a response that is due is never taken for that
of another request.
"""
from libc.stddef cimport size_t
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

from bookie._fast.client.answer_memory cimport AnswerMemory
from bookie._fast.client.direct_socket cimport DirectSocket, Outcome
from bookie._fast.client.framing_v2 cimport Response
from bookie._fast.client.payload_block cimport PayloadBlock

cdef enum:
    EXPECTED_MAX = 16            # requests that may be outstanding
    REQUEST_BYTES_MAX = 128      # of a read or a batch read

cdef enum Wanted:                # of a call
    SENT = 0                     # nothing: the request is sent, and its response taken later
    FRAME = 1                    # whatever answers
    ENTRY = 2
    BATCH = 3

cdef struct Expected:
    int32_t op
    int64_t ledger
    int64_t entry
    int64_t count                # of a batch read: the highest number of entries to return
    uint64_t number              # V2: request id; V3: transaction

cdef class DirectLink:
    cdef object __weakref__
    cdef DirectSocket socket
    cdef object owner            # has the descriptor and the SSL; `close` closes it
    cdef readonly bint v3
    cdef readonly double born_s  # when it was connected, on the monotonic clock
    cdef uint32_t frame_bytes_max
    cdef int64_t patience_ns     # how long the bookie may send nothing while a response is awaited
    cdef int64_t until_ns        # the time limit of the present call
    cdef int64_t quiet_until_ns  # until when the bookie may send nothing; 0 if it is not waited for
    cdef uint64_t numbers        # request ids used so far
    cdef AnswerMemory memory
    cdef PayloadBlock lender     # the block in whose memory the present call receives, or None
    cdef int64_t wanted          # the first entry of what the lender is used for
    cdef uint8_t* data           # where frames are received: in `memory`, or the lender's
    cdef size_t room             # bytes there
    cdef object one_edges        # the offsets of a batch with one entry of `one_size` bytes
    cdef int64_t one_size
    cdef size_t held             # bytes received in `data`
    cdef size_t need             # size of the frame there, with its prefix; 0 while unknown
    cdef size_t usual            # of the last frame
    cdef Expected expected[EXPECTED_MAX]
    cdef readonly int outstanding
    cdef bint greeted            # the response to START_TLS was received, which Java's bookie repeats inside TLS
    cdef bint open
    cdef bint busy               # a thread is in one of its methods
    cdef public bint owed        # it is kept for the response to an add that was acknowledged before
    cdef readonly int outcome    # of the last call, an Outcome
    cdef readonly int code       # of the last response

    cdef bint enter(self, double timeout_s) noexcept
    cdef object outcome_of(self, const uint8_t* request, size_t size, Wanted wanted, object digester)
    cdef object frame_of(self)
    cdef int misused(self, str text) except -1
    cdef void end(self, Outcome outcome)
    cdef void ask(self, int32_t op, int64_t ledger, int64_t entry, int64_t count) noexcept
    cdef Outcome fill(self) noexcept nogil
    cdef bint unasked(self) noexcept nogil
    cdef Outcome converse(self, const uint8_t* request, size_t size, size_t* sent, bint receive) noexcept nogil
    cdef bint attend(self, const uint8_t* request, size_t size, bint receive) except -1
    cdef bint identify(self, Response* row, Expected* request)
    cdef bint fail(self, Outcome outcome) noexcept
    cdef AnswerMemory release(self)
    cdef void use(self, AnswerMemory memory)
    cdef int borrow(self, PayloadBlock block) except -1
    cdef int give_back(self) except -1
    cdef void drop(self) noexcept nogil
    cdef size_t batch_frame(self, int64_t ledger, int64_t start, int32_t count, int64_t size, uint8_t* frame) noexcept
    cdef object entry_of(self, const Response* row, object digester, const Expected* request)
    cdef object run_of(self, const Response* row, object digester, const Expected* request)
