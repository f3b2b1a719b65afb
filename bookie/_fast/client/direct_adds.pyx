"""Claim an entry, send it to each bookie, await the responses, and acknowledge it or leave it to the event loop."""
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport uint32_t
from libc.string cimport memmove, memset

from bookie._fast.base.cursor cimport load_u32
from bookie._fast.base.poll cimport POLLIN, poll, pollfd
from bookie._fast.base.sync cimport now_ns
from bookie._fast.base.types cimport LENGTH_PREFIX
from bookie._fast.client.answer_memory cimport AnswerMemory, answer_memory
from bookie._fast.client.direct_socket cimport DONE, INTERRUPTED, LATE, LOST, REFUSED, Outcome
from bookie._fast.client.framing_v2 cimport Response, stored_frames
from bookie._fast.client.framing_v3 cimport AddBatchV3, stored_frames_v3
from bookie._fast.client.direct_link cimport Expected
from bookie._fast.client.write_window cimport WRITE_QUORUM_MAX, Slot
from bookie._fast.wire.request cimport ADD_ENTRY
from bookie._fast.wire.v2 cimport ADD_ENTRY_AT, FRAME_PREFIX, OP_ADD

cdef extern from *:
    int popcount "__builtin_popcountll"(uint64_t) noexcept nogil

cdef enum:
    NONE = -1
    SECOND = 1000000000
    MS = 1000000


cdef Outcome arrived(DirectLink link) noexcept:
    """Receive without waiting: DONE if there is a whole response, LATE if there will be."""
    cdef Outcome outcome
    if not link.open:
        return LOST
    link.until_ns = 0
    outcome = link.fill()
    return LATE if outcome == INTERRUPTED else outcome


cdef class Owed:
    """A response that is due after its entry was acknowledged. Internal."""


cdef class DirectAdder:
    """The direct adds of one ledger, whose entries get their ids from `window`.

    `take_over` has the event loop send what is unsent, acknowledge what is complete, see to `doubtful_adds`, and if
    `watched`, call `collect` a little later, and again while that returns true; any thread calls it.
    """

    def __init__(self, WriteWindow window not None, bytes key not None, take_over, waiting):
        if window.advanced or window.deferred or window.judged:
            raise ValueError("direct adds are for ordinary ledgers")
        self.window, self.key, self.take_over, self.waiting = window, key, take_over, waiting
        self.claimed = NONE
        self.owed, self.doubts = [], []

    cdef int hand_over(self) except -1:
        try:
            self.take_over()
        except BaseException:            # a signal's handler raised, perhaps before the call had an effect
            self.take_over()
            raise
        return 0

    def claim(self, payload, int64_t entry, int64_t changes, double now):
        """Seal the next entry and claim it. Return its Add, or None if it was not added.

        It is not added unless its id is `entry`, no other add is pending or waits for room, and nothing has changed
        since `changes`. If something else came first, the event loop sends the entry, and nothing is claimed.
        """
        cdef WriteWindow window = self.window
        cdef Py_buffer view
        cdef Py_ssize_t size
        cdef Slot* slot
        cdef Add add
        try:
            PyObject_GetBuffer(payload, &view, PyBUF_SIMPLE)
        except (TypeError, ValueError, BufferError):
            return None                  # as any other add, it fails with an error for readers
        size = view.len
        PyBuffer_Release(&view)
        if size > PAYLOAD_BYTES_MAX or window.error is not None or window.count or self.waiting:
            return None
        if window.next != entry or not self.undisturbed(changes):
            return None
        add = window.append(payload)
        if add is None:
            return None
        slot = window.find(add.entry)
        # To digest a large payload, the GIL was released.
        if (slot == NULL or window.count > 1 or window.queued != 1 or add.entry != entry
                or not self.undisturbed(changes)):
            self.hand_over()
            return add
        window.queued = 0
        slot.sent, slot.sent_at = True, now
        self.claimed, self.changes = entry, changes
        return add

    def undisturbed(self, int64_t changes):
        """Return whether the bookies are those of this time, and adds may be acknowledged."""
        return self.window.changes == changes and not self.window.holding

    def settle(self, uint64_t acked):
        """End the claim, if there is one. The bits of `acked` are the places of the write set that hold the entry.

        Return whether it is acknowledged. Otherwise the event loop goes on, and the Add tells how it ends.
        """
        return self.end_claim(acked)

    cdef bint end_claim(self, uint64_t acked) except -1:
        """End the claim, if there is one, of an entry that these places of its write set hold."""
        cdef WriteWindow window = self.window
        cdef int64_t entry = self.claimed
        cdef Slot* slot = NULL
        self.claimed = NONE
        if entry != NONE and window.error is None:
            slot = window.find(entry)
        if slot == NULL:
            return False
        if popcount(acked) >= window.ack_quorum and window.changes == self.changes:
            slot.acked = acked
            slot.complete = True
            if not window.holding and window.count == 1 and not window.waiters.by_id:
                window.advance()
                if self.waiting:
                    self.hand_over()
                return True
        else:
            slot.sent = False
            memmove(window.queue + 1, window.queue, window.queued * sizeof(int64_t))
            window.queue[0] = entry
            window.queued += 1
        self.hand_over()
        return False

    # Over direct connections.

    def add(self, payload, int64_t entry, int64_t changes, double now, list links not None, list pools not None,
            double since_s, double timeout_s):
        """Add the next entry over `links`, one to each bookie of its write set, in `timeout_s` seconds.

        Return its id if it is acknowledged; its Add if the event loop goes on with it; None if it was not added. A
        connection that was established after `since_s` is not used: there may be another bookie than before. Those
        whose response is owed are replaced by None in `links`; `pool.give(link)` returns them to their `pools` later.
        """
        cdef DirectLink link
        cdef Add add = None
        cdef int64_t until_ns
        cdef int entered = 0
        cdef int k
        cdef bint mine = False           # another thread may have claimed an entry
        cdef uint64_t acked = 0
        cdef bint acknowledged = False
        try:
            for link in links:
                if link.born_s >= since_s or not link.enter(timeout_s):
                    return None
                entered += 1
            until_ns = now_ns() + <int64_t> (timeout_s * SECOND)
            add = self.claim(payload, entry, changes, now)
            mine = add is not None and self.claimed == add.entry
            if mine:
                acked = self.stored(links, until_ns)
                if popcount(acked) >= self.window.ack_quorum:
                    self.owe(links, pools, acked, until_ns)
        except BaseException:
            for k in range(entered):
                if links[k] is not None:
                    (<DirectLink> links[k]).end(LOST)
            raise
        finally:
            for k in range(entered):
                if links[k] is not None:
                    (<DirectLink> links[k]).busy = False
            acknowledged = mine and self.end_claim(acked)
        return entry if acknowledged else add

    cdef uint64_t stored(self, list links, int64_t until_ns) except? 0:
        """Send the claimed entry over each connection, and return the places of those that have stored it.

        They are fewer than an ack quorum if one of them fails before.
        """
        cdef Slot* slot = self.window.find(self.claimed)
        cdef int64_t size = slot.record_bytes
        cdef AnswerMemory frame = answer_memory(<size_t> (size + ADD_OVERHEAD))
        cdef DirectLink link
        cdef uint64_t number = 0
        cdef uint64_t acked = 0
        cdef bint every = self.window.ack_quorum == self.window.write_quorum
        cdef bint well = True
        cdef bint v3 = False
        cdef int k
        for link in links:
            number = max(number, link.numbers)
        for link in links:
            link.numbers, v3 = number, link.v3
            link.ask(ADD_ENTRY if v3 else OP_ADD, self.window.ledger, self.claimed, 1)
        size = <int64_t> self.frame(v3, number + 1, size, frame.data)
        for k in range(len(links)):
            link = links[k]
            # Where all are awaited, the last one is sent and awaited at once, which is one call for a lone bookie.
            if not link.attend(frame.data, <size_t> size, every and k == len(links) - 1):
                well = False
        if not every:
            return self.quorum(links, until_ns) if well else 0
        for k in range(len(links)):
            if self.answered(links[k]):
                acked |= <uint64_t> 1 << k
        return acked

    cdef uint64_t quorum(self, list links, int64_t until_ns) except? 0:
        """Receive responses until an ack quorum has stored the claimed entry; return the places of these bookies.

        Return 0 if one fails, or time runs out; then no connection is left on which a response is due.
        """
        cdef pollfd[WRITE_QUORUM_MAX] fds
        cdef DirectLink link
        cdef uint64_t acked = 0
        cdef int64_t left_ns
        cdef int k, due, got
        cdef Outcome outcome
        while True:
            due = 0
            for k in range(len(links)):
                if acked >> k & 1:
                    continue
                link = links[k]
                outcome = arrived(link)
                if outcome == LATE:
                    fds[due].fd, fds[due].events, fds[due].revents = link.socket.fd, POLLIN, 0
                    due += 1
                elif outcome == DONE and self.answered(link):
                    acked |= <uint64_t> 1 << k
                else:
                    if outcome != DONE:
                        link.end(outcome)
                    return 0
            if popcount(acked) >= self.window.ack_quorum:
                return acked
            left_ns = until_ns - now_ns()
            if left_ns <= 0:
                for k in range(len(links)):
                    if not acked >> k & 1:
                        (<DirectLink> links[k]).end(LATE)
                return 0
            left_ns = min(left_ns, link.socket.tick_ns)
            with nogil:
                got = poll(fds, due, <int> ((left_ns + MS - 1) // MS))
            if got <= 0:
                PyErr_CheckSignals()     # a signal may have come just before the wait, or to another thread

    cdef int owe(self, list links, list pools, uint64_t acked, int64_t until_ns) except -1:
        """Keep the connections on which a response is due, and see to it that the event loop collects it."""
        cdef Slot* slot = self.window.find(self.claimed)
        cdef Owed one
        cdef int k
        if slot == NULL:                 # the ledger has failed
            return 0
        for k in range(len(links)):
            if acked >> k & 1:
                continue
            one = Owed.__new__(Owed)
            one.link, one.pool, one.entry, one.until_ns = links[k], pools[k], self.claimed, until_ns
            one.index = (self.claimed + k) % self.window.ensemble_size
            one.record = PyBytes_FromStringAndSize(<const char*> slot.record, <Py_ssize_t> slot.record_bytes)
            one.link.busy = False
            one.link.owed = True
            self.owed.append(one)
            links[k] = None
        if self.owed and not self.watched:
            self.watched = True
            self.hand_over()
        return 0

    # What is owed.

    @property
    def owing(self):
        """Whether responses to acknowledged entries are due."""
        return bool(self.owed)

    def collect(self, bint rest=False):
        """Receive what has arrived of the responses that are due, without waiting; return whether more are due.

        The event loop is told of those that are late, bad or lost. With `rest`, it is the event loop that calls, and
        if nothing more is due it will not call again before it is told to.
        """
        cdef Owed one
        cdef bint due, doubt
        for _ in range(len(self.owed)):
            if not self.owed:            # another thread collects, too
                break
            one = self.owed.pop(0)
            due = False
            doubt = True
            try:
                doubt = self.doubtful(one, &due)
            finally:
                if due:
                    self.owed.append(one)
                elif doubt:
                    self.doubts.append(one)
                    self.doubted += 1
            if not due:
                one.link.owed = False
                one.pool.give(one.link)
        if self.doubts:
            self.hand_over()
        if rest and not self.owed:
            self.watched = False
        return bool(self.owed)

    cdef bint doubtful(self, Owed one, bint* due) except -1:
        """Return whether an owed response is late, bad or lost; `due` says whether it may still come in time."""
        cdef Outcome outcome = arrived(one.link)
        if outcome == LATE and now_ns() < one.until_ns:
            due[0] = True
            return False
        if outcome == DONE:
            return not self.answered(one.link)
        one.link.end(outcome)
        return True

    def doubtful_adds(self):
        """Return (entry, index in the ensemble, pool, record) of each response that became a doubt, and forget them.

        The bookie at the index may be another one by now than that of the pool.
        """
        doubts, self.doubts = self.doubts, []
        return [((<Owed> one).entry, (<Owed> one).index, (<Owed> one).pool, (<Owed> one).record) for one in doubts]

    cdef size_t frame(self, bint v3, uint64_t number, int64_t size, uint8_t* out) noexcept:
        """Write the request for the claimed entry, whose record has `size` bytes, and return the size of its frame."""
        cdef const uint8_t* record = self.window.find(self.claimed).record
        cdef int64_t[2] edges
        cdef AddBatchV3 batch
        edges[0], edges[1] = 0, size
        if not v3:
            stored_frames(<const uint8_t*> PyBytes_AS_STRING(self.key), 0, record, edges, 1, out)
            return FRAME_PREFIX + ADD_ENTRY_AT + size - LENGTH_PREFIX
        memset(&batch, 0, sizeof(batch))
        batch.ledger, batch.transaction = self.window.ledger, number
        batch.key, batch.key_size = <const uint8_t*> PyBytes_AS_STRING(self.key), <uint32_t> len(self.key)
        stored_frames_v3(&batch, record, edges, &self.claimed, 1, out)
        return FRAME_PREFIX + <size_t> load_u32(out)

    cdef bint answered(self, DirectLink link) except -1:
        """Receive the response to the add, unless it was received already, and return whether it is good."""
        cdef Response row
        cdef Expected request
        if not link.open or (link.need == 0 and not link.attend(NULL, 0, True)):
            return False
        if not link.identify(&row, &request):
            return False
        link.drop()
        link.outcome = REFUSED if row.code else DONE
        return row.code == 0
