"""Claim an entry, send it to each bookie, await the responses, and acknowledge it or leave it to the event loop."""
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING
from libc.stdint cimport uint32_t
from libc.string cimport memmove, memset

from bookie._fast.base.cursor cimport load_u32
from bookie._fast.base.types cimport LENGTH_PREFIX
from bookie._fast.client.answer_memory cimport AnswerMemory, answer_memory
from bookie._fast.client.direct_socket cimport DONE, LOST, REFUSED
from bookie._fast.client.framing_v2 cimport Response, stored_frames
from bookie._fast.client.framing_v3 cimport AddBatchV3, stored_frames_v3
from bookie._fast.client.direct_link cimport Expected
from bookie._fast.client.write_window cimport Slot
from bookie._fast.wire.request cimport ADD_ENTRY
from bookie._fast.wire.v2 cimport ADD_ENTRY_AT, FRAME_PREFIX, OP_ADD

cdef enum:
    NONE = -1


cdef class DirectAdder:
    """The direct adds of one ledger, whose entries need all bookies of their write set and get their ids from `window`.

    `take_over` has the event loop send what is unsent and acknowledge what is complete; any thread calls it.
    """

    def __init__(self, WriteWindow window not None, bytes key not None, take_over, waiting):
        if window.advanced or window.deferred or window.judged or window.ack_quorum < window.write_quorum:
            raise ValueError("direct adds are for ordinary ledgers whose ack quorum is the write quorum")
        self.window, self.key, self.take_over, self.waiting = window, key, take_over, waiting
        self.claimed = NONE

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

    def settle(self, bint stored):
        """End the claim, if there is one. `stored` says that all bookies of the write set hold the entry.

        Return whether it is acknowledged. Otherwise the event loop goes on, and the Add tells how it ends.
        """
        cdef WriteWindow window = self.window
        cdef int64_t entry = self.claimed
        cdef Slot* slot = NULL
        self.claimed = NONE
        if entry != NONE and window.error is None:
            slot = window.find(entry)
        if slot == NULL:
            return False
        if stored and window.changes == self.changes:
            slot.acked = <uint64_t> -1 >> (64 - window.write_quorum)
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

    def add(self, payload, int64_t entry, int64_t changes, double now, tuple links not None, double since_s,
            double timeout_s):
        """Add the next entry over `links`, one to each bookie of its write set, in `timeout_s` seconds.

        Return its id if it is acknowledged; its Add if the event loop goes on with it; None if it was not added. A
        connection that was established after `since_s` is not used: there may be another bookie than before.
        """
        cdef DirectLink link
        cdef Add add = None
        cdef int entered = 0
        cdef int k
        cdef bint mine = False           # another thread may have claimed an entry
        cdef bint stored = False
        cdef bint acknowledged = False
        try:
            for link in links:
                if link.born_s >= since_s or not link.enter(timeout_s):
                    return None
                entered += 1
            add = self.claim(payload, entry, changes, now)
            mine = add is not None and self.claimed == add.entry
            if mine:
                stored = self.stored(links)
        except BaseException:
            for k in range(entered):
                (<DirectLink> links[k]).end(LOST)
            raise
        finally:
            for k in range(entered):
                (<DirectLink> links[k]).busy = False
            acknowledged = mine and self.settle(stored)
        return entry if acknowledged else add

    cdef bint stored(self, tuple links) except -1:
        """Send the claimed entry over each connection, and return whether all bookies have stored it."""
        cdef Slot* slot = self.window.find(self.claimed)
        cdef int64_t size = slot.record_bytes
        cdef AnswerMemory frame = answer_memory(<size_t> (size + ADD_OVERHEAD))
        cdef DirectLink link
        cdef uint64_t number = 0
        cdef bint well = True
        cdef bint v3 = False
        cdef int k
        for link in links:
            number = max(number, link.numbers)
        for link in links:
            link.numbers, v3 = number, link.v3
            link.ask(ADD_ENTRY if v3 else OP_ADD, self.window.ledger, self.claimed, 1)
        size = <int64_t> self.frame(v3, number + 1, size, frame.data)
        for k in range(len(links)):      # the last one is sent and awaited at once, which is one call for a lone bookie
            link = links[k]
            if not link.attend(frame.data, <size_t> size, k == len(links) - 1):
                well = False
        for link in links:
            if not self.answered(link):
                well = False
        return well

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
