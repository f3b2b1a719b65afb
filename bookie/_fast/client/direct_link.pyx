"""Requests of the calling thread: send, receive one frame, find the request that it answers, check, hand out."""
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.exc cimport PyErr_CheckSignals
from libc.string cimport memcpy, memmove

import numpy as np

from bookie._fast.base.cursor cimport load_u32, store_u32
from bookie._fast.base.openssl_c cimport connection_pointer
from bookie._fast.base.sync cimport now_ns
from bookie._fast.base.types cimport LENGTH_PREFIX, OK, Status
from bookie._fast.client.answer_memory cimport ANSWER_BYTES_MIN, answer_memory
from bookie._fast.client.direct_socket cimport (
    DONE,
    INTERRUPTED,
    NO_ROOM,
    socket_receive,
    socket_send,
    socket_set_tick,
)
from bookie._fast.client.framing_v2 cimport batch_frame_v2, is_start_tls, response_row
from bookie._fast.client.framing_v3 cimport (
    BatchAnswer,
    batch_answer_find,
    copy_run,
    patch_run,
    response_v3_row,
)
from bookie._fast.client.single_reads cimport (
    ReadAnswerV3,
    batch_frame_v3,
    frames_v2,
    frames_v3,
    read_answer_v3,
)
from bookie._fast.wire.digest cimport Digest, Digester
from bookie._fast.wire.record cimport entry_holds, records_count, records_offsets, records_verify
from bookie._fast.wire.request cimport BATCH_READ_ENTRY, READ_ENTRY
from bookie._fast.wire.v2 cimport FRAME_PREFIX, OP_BATCH_READ, OP_READ, READ_BYTES

from bookie._fast.client.direct_socket cimport INVALID as invalid
from bookie._fast.client.direct_socket cimport LATE as late
from bookie._fast.client.direct_socket cimport LOST as lost
from bookie._fast.client.direct_socket cimport MALFORMED as malformed
from bookie._fast.client.direct_socket cimport REFUSED as refused

cdef extern from "<sys/socket.h>" nogil:
    int shutdown(int, int) noexcept
    int SHUT_RDWR

cdef enum:
    COPIED_BYTES_MAX = 16 << 10  # entries of this size are copied, so that small ones do not keep large memory
    SECOND = 1000000000
    SECONDS_MAX = 1000000000     # a longer time limit is none

cdef int64_t TICK_NS = 100000000
LATE, LOST, MALFORMED, REFUSED, INVALID = <int> late, <int> lost, <int> malformed, <int> refused, <int> invalid


cdef class DirectLink:
    """A connected, encrypted and authenticated connection, or one on which `exchange` still does the latter.

    `owner` is a socket, or, if `encrypted`, a pyOpenSSL connection over one that does not block; the link closes it.
    """

    def __cinit__(self, owner, uint32_t frame_bytes_max, double patience_s, *, bint v3, bint encrypted=False):
        self.owner = owner
        self.v3 = v3
        self.born_s = now_ns() / 1e9
        self.frame_bytes_max = frame_bytes_max
        self.patience_ns = <int64_t> (patience_s * SECOND)
        self.socket.fd = owner.fileno()
        self.socket.ssl = connection_pointer(owner) if encrypted else NULL
        self.use(answer_memory(ANSWER_BYTES_MIN))
        self.open = self.socket.fd >= 0 and socket_set_tick(&self.socket, TICK_NS)

    @property
    def usable(self):
        """Whether another request can be sent: the connection is open, and no response is due."""
        return self.open and not self.outstanding and not self.busy

    def __del__(self):
        self.close()

    def shutdown(self):
        """End the connection from any thread; one that waits for a response finds it lost."""
        if self.open:
            shutdown(self.socket.fd, SHUT_RDWR)

    def close(self):
        """Close the connection, unless a thread uses it, which then finds it lost. It may be called twice."""
        if self.busy:
            self.shutdown()
        elif self.open:
            self.end(lost)

    # --- the connection -----------------------------------------------------------------------------------------------

    cdef bint enter(self, double timeout_s) noexcept:
        """Begin a call, unless the connection has ended or another thread is using it."""
        if not self.open or self.busy:
            self.outcome = lost
            return False
        self.busy = True
        self.until_ns = now_ns() + <int64_t> (min(timeout_s, SECONDS_MAX) * SECOND)
        return True

    cdef object outcome_of(self, const uint8_t* request, size_t size, Wanted wanted, object digester):
        """Send a request, receive what is wanted, and end the call that began with `enter`.

        Any exception ends the connection, since a response may be due.
        """
        cdef Response row
        cdef Expected answered
        try:
            if not self.attend(request, size, wanted != SENT):
                return None
            if wanted == SENT:
                return True
            if wanted == FRAME:
                return self.frame_of()
            if not self.identify(&row, &answered):
                return None
            if wanted == ENTRY:
                return self.entry_of(&row, digester, &answered)
            return self.run_of(&row, digester, &answered)
        except BaseException:
            self.end(lost)
            raise
        finally:
            self.busy = False

    cdef object frame_of(self):
        body = PyBytes_FromStringAndSize(<const char*> self.data + FRAME_PREFIX, self.need - FRAME_PREFIX)
        self.drop()
        self.numbers = 1 << 20  # the transactions before were used by the frames
        return body

    cdef int misused(self, str text) except -1:
        """End the connection and the call, since the caller has lost track of its responses."""
        self.busy = False
        self.end(lost)
        raise ValueError(text)

    cdef void end(self, Outcome outcome):
        self.outcome = outcome
        if self.open:
            self.open = False
            self.socket.fd = -1
            try:
                self.owner.close()
            except BaseException:  # a signal's handler raised, perhaps before the descriptor was closed
                self.owner.close()
                raise

    cdef bint fail(self, Outcome outcome) noexcept:
        """Note why a request failed whose response has arrived; the connection stays in use."""
        self.outcome = outcome
        return False

    cdef void ask(self, int32_t op, int64_t ledger, int64_t entry, int64_t count) noexcept:
        cdef Expected* request = &self.expected[self.outstanding]
        self.numbers += 1
        request.op, request.ledger, request.entry, request.count = op, ledger, entry, count
        request.number = self.numbers
        self.outstanding += 1

    cdef Outcome fill(self) noexcept nogil:
        """Receive until `memory` begins with a whole frame. What follows is received only where more is due."""
        cdef size_t room, got
        cdef Outcome outcome
        while True:
            if self.need == 0 and self.held >= FRAME_PREFIX:
                self.need = FRAME_PREFIX + <size_t> load_u32(self.data)
                if self.need > self.frame_bytes_max or self.need == FRAME_PREFIX:
                    return malformed
            if self.need and self.held >= self.need:
                if not self.unasked():
                    return DONE
                continue
            if self.need > self.room:
                return NO_ROOM
            room = self.room - self.held
            if self.outstanding > 1:
                # Leave the next frame in the socket, except for its prefix: it gets memory of its own.
                got = self.need + FRAME_PREFIX if self.need else max(self.usual, <size_t> FRAME_PREFIX)
                room = min(room, got - self.held)
            if self.quiet_until_ns == 0:
                self.quiet_until_ns = now_ns() + self.patience_ns
            outcome = socket_receive(&self.socket, self.data + self.held, room,
                                     min(self.until_ns, self.quiet_until_ns), &got)
            if outcome != INTERRUPTED:
                self.quiet_until_ns = 0
            if outcome != DONE:
                return outcome
            self.held += got

    cdef bint unasked(self) noexcept nogil:
        """Drop the received frame if it is the response to START_TLS, once; return whether it was."""
        if self.socket.ssl == NULL or self.greeted:
            return False
        if not is_start_tls(self.data + FRAME_PREFIX, <uint32_t> (self.need - FRAME_PREFIX)):
            return False
        self.greeted = True
        self.drop()
        return True

    cdef Outcome converse(self, const uint8_t* request, size_t size, size_t* sent, bint receive) noexcept nogil:
        cdef Outcome outcome
        if sent[0] < size:
            outcome = socket_send(&self.socket, request, size, self.until_ns, sent)
            if outcome != DONE:
                return outcome
        return self.fill() if receive else DONE

    cdef bint attend(self, const uint8_t* request, size_t size, bint receive) except -1:
        """Send a request (nothing if `size` is 0), and receive a frame if `receive`. Return whether that succeeded."""
        cdef AnswerMemory larger
        cdef size_t sent = 0
        cdef Outcome outcome
        self.quiet_until_ns = 0
        while True:
            with nogil:
                outcome = self.converse(request, size, &sent, receive)
            if outcome == NO_ROOM:
                larger = answer_memory(self.need + FRAME_PREFIX)
                memcpy(larger.data, self.data, self.held)
                self.use(larger)
            elif outcome == INTERRUPTED:
                PyErr_CheckSignals()
            elif outcome == DONE:
                return True
            else:
                self.end(outcome)
                return False

    cdef bint identify(self, Response* row, Expected* request):
        """Find the request that the received frame answers, and remove it; end the connection if there is none."""
        cdef const uint8_t* body = self.data + FRAME_PREFIX
        cdef uint32_t size = <uint32_t> (self.need - FRAME_PREFIX)
        cdef Status status = response_v3_row(body, size, row) if self.v3 else response_row(body, size, row)
        cdef int k
        cdef Expected* one
        if status == OK:
            for k in range(self.outstanding):
                one = &self.expected[k]
                if one.op != row.op:
                    continue
                if (self.v3 or row.op == OP_BATCH_READ) and one.number != <uint64_t> row.request_id:
                    continue
                if not self.v3 and (one.ledger != row.ledger or one.entry != row.entry):
                    continue
                request[0] = one[0]
                self.outstanding -= 1
                self.expected[k] = self.expected[self.outstanding]
                self.code = row.code
                return True
        self.end(malformed)
        return False

    cdef AnswerMemory release(self):
        """Take the frame, and the memory that it is in; what follows it moves to other memory."""
        cdef AnswerMemory whole = self.memory
        cdef size_t more = self.held - self.need
        cdef AnswerMemory fresh = answer_memory(max(self.need + FRAME_PREFIX, more))
        memcpy(fresh.data, whole.data + self.need, more)
        self.use(fresh)
        self.usual, self.held, self.need = self.need, more, 0
        return whole

    cdef void use(self, AnswerMemory memory):
        """Receive into memory of the link's own."""
        self.memory, self.data, self.room = memory, memory.data, memory.capacity
        self.lender = None

    cdef int borrow(self, PayloadBlock block) except -1:
        """Receive the next frame into a block, if it has begun with little more than its size, and has room there."""
        cdef size_t room = 0
        cdef uint8_t* data
        if self.held > FRAME_PREFIX:
            return 0
        if self.held == FRAME_PREFIX:
            data = block.place(FRAME_PREFIX + <size_t> load_u32(self.data) + FRAME_PREFIX, &room)
        else:
            data = block.place(self.usual + FRAME_PREFIX, &room)
        if data != NULL:
            memcpy(data, self.data, self.held)
            self.lender, self.data, self.room = block, data, room
        return 0

    cdef int give_back(self) except -1:
        """Receive into memory of the link's own again, and take along what was received of further frames."""
        cdef AnswerMemory own = self.memory if self.held <= self.memory.capacity else answer_memory(self.held)
        memcpy(own.data, self.data, self.held)
        self.use(own)
        return 0

    cdef void drop(self) noexcept nogil:
        """Drop the frame, whose content was copied or is not wanted."""
        memmove(self.data, self.data + self.need, self.held - self.need)
        self.usual, self.held, self.need = self.need, self.held - self.need, 0

    # --- single reads -------------------------------------------------------------------------------------------------

    def read(self, int64_t ledger, int64_t entry, Digester digester not None, double timeout_s):
        """Read one entry and check it. Return (run, offsets, LAC or None), or None; `outcome` then says why.

        The run is `u32 length | entry`, as in a batch of one.
        """
        cdef uint8_t frame[REQUEST_BYTES_MAX]
        cdef size_t size
        if not self.enter(timeout_s):
            return None
        self.ask(READ_ENTRY if self.v3 else OP_READ, ledger, entry, 1)
        if self.v3:
            size = <size_t> frames_v3(ledger, &entry, 1, self.numbers, frame)
        else:
            frames_v2(ledger, &entry, 1, frame)
            size = FRAME_PREFIX + READ_BYTES
        return self.outcome_of(frame, size, ENTRY, digester)

    cdef object entry_of(self, const Response* row, object digester, const Expected* request):
        cdef const Digest* digest = &(<Digester> digester).digest
        cdef ReadAnswerV3 answer
        cdef uint8_t* body = self.data + FRAME_PREFIX
        cdef uint8_t* record
        cdef const uint8_t* stored = body + row.body_at
        cdef int64_t size = row.body_size
        cdef size_t at
        cdef bint holds
        lac = None
        if row.code:
            self.drop()
            self.fail(refused)
            return None
        if self.v3:
            if read_answer_v3(body, self.need - FRAME_PREFIX, &answer) != OK or answer.entry == NULL:
                self.drop()
                self.fail(invalid)
                return None
            stored, size = answer.entry, <int64_t> answer.size
            if answer.has_lac:
                lac = answer.lac
        with nogil:
            holds = entry_holds(digest, stored, size, request.ledger, request.entry)
        if not holds:
            self.drop()
            self.fail(invalid)
            return None
        if self.one_edges is None or self.one_size != size:
            # Most entries have the size of the one before, and the offsets of a batch never change.
            self.one_edges, self.one_size = np.array([0, LENGTH_PREFIX + size], dtype=np.int64), size
        if size > COPIED_BYTES_MAX:
            record = <uint8_t*> stored - LENGTH_PREFIX   # lies in the frame: its header precedes the entry
            store_u32(record, <uint32_t> size)
            at = record - self.data
            run = memoryview(self.release())[at:at + LENGTH_PREFIX + size]
        else:
            copy = PyBytes_FromStringAndSize(NULL, LENGTH_PREFIX + size)
            record = <uint8_t*> PyBytes_AS_STRING(copy)
            store_u32(record, <uint32_t> size)
            memcpy(record + LENGTH_PREFIX, stored, size)
            self.drop()
            run = memoryview(copy)
        self.outcome = DONE
        return run, self.one_edges, lac

    # --- batch reads --------------------------------------------------------------------------------------------------

    def ask_batch(self, int64_t ledger, int64_t start, int32_t count, int64_t size, double timeout_s):
        """Send a batch read, whose response `take_batch` returns. Return whether it was sent."""
        cdef uint8_t frame[REQUEST_BYTES_MAX]
        cdef size_t size_of_frame
        if not self.enter(timeout_s):
            return False
        if self.outstanding == EXPECTED_MAX:
            self.misused(f"{EXPECTED_MAX} batch reads are outstanding; take a response first")
        size_of_frame = self.batch_frame(ledger, start, count, size, frame)
        return self.outcome_of(frame, size_of_frame, SENT, None) is not None

    cdef size_t batch_frame(self, int64_t ledger, int64_t start, int32_t count, int64_t size, uint8_t* frame) noexcept:
        self.ask(BATCH_READ_ENTRY if self.v3 else OP_BATCH_READ, ledger, start, count)
        if self.v3:
            return batch_frame_v3(ledger, start, count, size, self.numbers, frame)
        return batch_frame_v2(ledger, start, <int64_t> self.numbers, count, size, 0, NULL, frame)

    def take_batch(self, Digester digester not None, double timeout_s, PayloadBlock block=None, int64_t entry=-1):
        """Wait for the next response to a batch read, and check its entries.

        Return (first entry, run, offsets, LAC or None), or None; `outcome` then says why. The run ends before the
        first invalid entry, and has no more entries than were requested. With `block`, it may lie in the memory of
        the block if it begins with `entry`: it must be added there before anything else is, and cannot be used
        afterwards.
        """
        if not self.enter(timeout_s):
            return None
        if self.outstanding == 0:
            self.misused("no batch read is outstanding")
        if block is None:
            return self.outcome_of(NULL, 0, BATCH, digester)
        self.wanted = entry
        try:
            self.borrow(block)
            return self.outcome_of(NULL, 0, BATCH, digester)
        finally:
            self.busy = False
            if self.lender is not None:
                self.give_back()

    def batch_read(self, int64_t ledger, int64_t start, int32_t count, int64_t size, Digester digester not None,
                   double timeout_s):
        """Read a batch while nothing is outstanding; as `ask_batch`, then `take_batch`."""
        cdef uint8_t frame[REQUEST_BYTES_MAX]
        cdef size_t size_of_frame
        if not self.enter(timeout_s):
            return None
        if self.outstanding:
            self.misused("a batch read is outstanding; take its response first")
        size_of_frame = self.batch_frame(ledger, start, count, size, frame)
        return self.outcome_of(frame, size_of_frame, BATCH, digester)

    cdef object run_of(self, const Response* row, object digester, const Expected* request):
        cdef const Digest* digest = &(<Digester> digester).digest
        cdef AnswerMemory copied = None
        cdef uint8_t* data = self.data
        cdef uint8_t* body = data + FRAME_PREFIX
        cdef size_t at = FRAME_PREFIX + row.body_at
        cdef size_t size = row.body_size
        cdef BatchAnswer answer
        cdef Status status = OK
        cdef int64_t count = 0
        cdef int64_t good
        cdef int64_t[::1] edges
        lac = None
        if row.code == 0 and self.v3:
            with nogil:
                status = batch_answer_find(body, self.need - FRAME_PREFIX, &answer)
            if status == OK:
                if answer.has_lac:
                    lac = answer.lac
                if answer.in_place and answer.count:
                    patch_run(body, &answer)
                    at, size = FRAME_PREFIX + answer.at, answer.end - answer.at
                else:
                    copied = answer_memory(answer.run_bytes)
                    data, at, size = copied.data, 0, answer.run_bytes
                    with nogil:
                        copy_run(body, self.need - FRAME_PREFIX, data)
        if row.code == 0 and status == OK:
            with nogil:
                status = records_count(data + at, size, &count)
        if row.code or status != OK or count == 0:
            self.drop()
            self.fail(refused if row.code else invalid)
            return None
        count = min(count, request.count)
        offsets = np.empty(count + 1, dtype=np.int64)
        edges = offsets
        with nogil:
            records_offsets(data + at, count, &edges[0])
            good = records_verify(digest, data + at, &edges[0], count, request.ledger, request.entry)
        if good == 0:
            self.drop()
            self.fail(invalid)
            return None
        size = <size_t> edges[good]
        if size <= COPIED_BYTES_MAX:
            run = memoryview(PyBytes_FromStringAndSize(<const char*> data + at, size))
            self.drop()
        elif copied is not None:
            run = memoryview(copied)[at:at + size]
            self.drop()
        elif self.lender is not None and request.entry != self.wanted:
            copied = answer_memory(size)
            memcpy(copied.data, data + at, size)
            run = memoryview(copied)[:size]
            self.drop()
        elif self.lender is not None:
            run = self.lender.keep(data + at, data + at + size)
            self.data += self.need       # what follows leaves the block in `give_back`
            self.usual, self.held, self.need = self.need, self.held - self.need, 0
        else:
            run = memoryview(self.release())[at:at + size]
        self.outcome = DONE
        return request.entry, run, offsets[:good + 1], lac

    # --- before the first request -------------------------------------------------------------------------------------

    def exchange(self, const uint8_t[::1] frame, double timeout_s):
        """Send a frame, and return the frame that answers it without its prefix, or None; `outcome` then says why.

        It is for authentication, before anything else is requested.
        """
        if not self.enter(timeout_s):
            return None
        return self.outcome_of(&frame[0], frame.shape[0], FRAME, None)
