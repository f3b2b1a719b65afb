"""The adds of one ledger from the time they are sealed until they are acknowledged in order."""
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stdlib cimport calloc, free, malloc, qsort, realloc
from libc.stdint cimport int32_t, uint32_t
from libc.string cimport memcpy, memmove, memset

import asyncio
import threading

import numpy as np

from bookie._fast.base.cursor cimport store_i64, store_u32
from bookie._fast.base.types cimport LENGTH_PREFIX
from bookie._fast.wire.digest cimport ENTRY_FIXED_BYTES, digest_sum

cdef extern from *:
    int popcount "__builtin_popcountll"(uint64_t) noexcept nogil

cdef enum:
    EMPTY = -1
    SLOTS_LEAST = 64
    CHUNK_LEAST = 16 << 10
    CHUNK_MOST = 1 << 20
    MANY_BYTES = 1 << 20
    SEAL_ALONE_FROM = 32 << 10   # payload bytes from which releasing the GIL costs less than holding it

_get_running_loop = asyncio.get_running_loop
_new_lock = threading.Lock


cdef int by_id(const void* one, const void* other) noexcept nogil:
    cdef int64_t a = (<const int64_t*> one)[0], b = (<const int64_t*> other)[0]
    return (a > b) - (a < b)


cdef class Chunk:
    """Memory for records. Internal."""

    def __cinit__(self, int64_t size):
        if size < 1:
            raise ValueError(f"a chunk of {size} bytes; it needs at least 1")
        self.area.base = <uint8_t*> malloc(<size_t> size)
        if self.area.base is NULL:
            raise MemoryError(f"no memory for {size} bytes of pending adds")
        self.area.size = self.shape = size
        self.stride = 1

    def __dealloc__(self):
        free(self.area.base)

    def __getbuffer__(self, Py_buffer* view, int flags):
        view.buf = self.area.base
        view.obj = self
        view.len = self.shape
        view.readonly = 1
        view.itemsize = 1
        view.format = b"B"
        view.ndim = 1
        view.shape = &self.shape
        view.strides = &self.stride
        view.suboffsets = NULL
        view.internal = NULL


cdef class WriteWindow:
    """The pending adds of one ledger. `quorums` are ensemble, write and ack quorum; `first` and `length` describe the
    ledger before the first add, whose LAC is first - 1.
    """

    def __cinit__(self, *_, **__):
        self.mask = SLOTS_LEAST - 1
        self.slots = <Slot*> malloc(SLOTS_LEAST * sizeof(Slot))
        self.queue = <int64_t*> calloc(SLOTS_LEAST, sizeof(int64_t))
        self.batch_ids = <int64_t*> calloc(SLOTS_LEAST, sizeof(int64_t))
        if self.slots is NULL or self.queue is NULL or self.batch_ids is NULL:
            raise MemoryError("no memory for pending adds")
        memset(self.slots, 0xFF, SLOTS_LEAST * sizeof(Slot))

    def __dealloc__(self):
        free(self.slots)
        free(self.queue)
        free(self.batch_ids)

    def __init__(self, Digester digester, int64_t ledger, quorums, explain, *, int64_t first=0, int64_t length=0,
                 int64_t count_max=10_000, int64_t bytes_max=64 << 20, int64_t record_bytes_max=5 << 20,
                 bint advanced=False, bint deferred=False, bint judged=False):
        self.ensemble_size, self.write_quorum, self.ack_quorum = quorums
        if not 1 <= self.ack_quorum <= self.write_quorum <= self.ensemble_size:
            raise ValueError(f"quorums are {quorums}; they must satisfy ensemble >= write >= ack >= 1")
        if self.write_quorum > WRITE_QUORUM_MAX:
            raise ValueError(f"the write quorum is {self.write_quorum}; it can be at most {WRITE_QUORUM_MAX}")
        self.digester, self.ledger, self.explain = digester, ledger, explain
        self.next = self.head = first
        self.lac = first - 1
        self.length = self.head_length = length
        self.count_max, self.bytes_max, self.record_bytes_max = count_max, bytes_max, record_bytes_max
        self.advanced, self.deferred, self.judged = advanced, deferred, judged
        self.chunks = []
        self.waiters = AddWaiters.__new__(AddWaiters)

    # The table of pending entries.

    cdef Slot* find(self, int64_t id) noexcept nogil:
        cdef int64_t at = id & self.mask
        while self.slots[at].id != EMPTY:
            if self.slots[at].id == id:
                return &self.slots[at]
            at = (at + 1) & self.mask
        return NULL

    cdef int64_t place(self, int64_t id, int64_t index) noexcept nogil:
        """Return the place of ensemble index `index` in the write set of `id`; none if not below the write quorum."""
        cdef int64_t place = index - id % self.ensemble_size
        return place if place >= 0 else place + self.ensemble_size

    cdef Slot* insert(self, int64_t id) noexcept nogil:
        cdef int64_t at = id & self.mask
        while self.slots[at].id != EMPTY:
            at = (at + 1) & self.mask
        memset(&self.slots[at], 0, sizeof(Slot))
        self.slots[at].id = id
        self.count += 1
        self.displaced += at != id & self.mask
        return &self.slots[at]

    cdef void remove(self, Slot* slot) noexcept nogil:
        """Free a slot, and move back the slots that probing would no longer find after the gap.

        Consecutive ids are one long run of slots at id & mask, and then none has to be moved.
        """
        cdef int64_t gap = slot - self.slots
        cdef int64_t at = gap
        slot.area.live -= 1
        self.bytes -= slot.record_bytes
        self.count -= 1
        self.displaced -= gap != slot.id & self.mask
        while self.displaced:
            at = (at + 1) & self.mask
            if self.slots[at].id == EMPTY:
                break
            if ((at - self.slots[at].id) & self.mask) >= ((at - gap) & self.mask):
                self.displaced -= gap == self.slots[at].id & self.mask
                self.slots[gap] = self.slots[at]
                gap = at
        self.slots[gap].id = EMPTY

    cdef int grow(self) except -1:
        cdef Slot* former = self.slots
        cdef int64_t places = self.mask + 1
        cdef int64_t at, kept
        cdef Slot* table = <Slot*> malloc(2 * places * sizeof(Slot))
        cdef int64_t* queue = <int64_t*> realloc(self.queue, 2 * places * sizeof(int64_t))
        if queue is not NULL:
            self.queue = queue
        cdef int64_t* ids = <int64_t*> realloc(self.batch_ids, 2 * places * sizeof(int64_t))
        if ids is not NULL:
            self.batch_ids = ids
        if table is NULL or queue is NULL or ids is NULL:
            free(table)
            raise MemoryError(f"no memory for {2 * places} pending adds")
        memset(table, 0xFF, 2 * places * sizeof(Slot))
        self.slots, self.mask = table, 2 * places - 1
        kept, self.displaced = self.count, 0
        for at in range(places):
            if former[at].id != EMPTY:
                self.insert(former[at].id)[0] = former[at]
        self.count = kept
        free(former)
        return 0

    # Adds.

    cdef Chunk chunk_for(self, int64_t size, bint urgent):
        """Return a chunk with room for `size` bytes, or None if the chunks have too much memory already."""
        cdef Chunk chunk
        cdef int64_t room
        if self.chunks:
            chunk = self.chunks[len(self.chunks) - 1]
            if chunk.area.live == 0:
                chunk.area.used = 0
            if chunk.area.size - chunk.area.used >= size:
                return chunk
        room = min(max(2 * self.bytes, CHUNK_LEAST), CHUNK_MOST)
        room = max(room, size)
        if self.chunk_bytes + room > 2 * self.bytes_max and self.count and not urgent:
            return None
        chunk = Chunk(room)
        self.chunk_bytes += room
        self.chunks.append(chunk)
        return chunk

    cdef int64_t admit(self, int64_t entry, int64_t size) except -2:
        """Return the id of the next add, or -1 if the window is full. The id at `head` is always admitted."""
        if size > self.record_bytes_max:
            raise ValueError(f"the entry needs {size} bytes with its header; the limit is {self.record_bytes_max}:"
                             " write smaller entries, or raise nettyMaxFrameSizeBytes of the client and its bookies")
        if self.advanced != (entry >= 0):
            raise ValueError(f"entry id is {entry}: " + ("pass one >= 0" if self.advanced else "pass none here"))
        if self.advanced and (entry < self.head or self.find(entry) is not NULL):
            raise KeyError(entry)
        if self.count and entry != self.head and (
                self.count >= self.count_max or self.bytes + size > self.bytes_max):
            return -1
        if 2 * (self.count + 1) > self.mask:
            self.grow()
        return entry if self.advanced else self.next

    cdef Slot* enter(self, int64_t id, int64_t size, int64_t payload_bytes, Chunk chunk):
        """Create the slot of an admitted add, complete but for payload and digest."""
        cdef Slot* slot = self.insert(id)
        cdef uint8_t* at = chunk.area.base + chunk.area.used
        slot.area, slot.record, slot.record_bytes, slot.payload_bytes = &chunk.area, at, size, payload_bytes
        chunk.area.used += size
        chunk.area.live += 1
        self.bytes += size
        self.length += payload_bytes
        slot.length = self.length
        self.next = max(self.next, id + 1)
        self.queue[self.queued] = id
        self.queued += 1
        store_u32(at, <uint32_t> (size - LENGTH_PREFIX))
        store_i64(at + 4, self.ledger)
        store_i64(at + 12, id)
        store_i64(at + 20, self.lac)
        store_i64(at + 28, self.length)
        return slot

    cdef void seal(self, uint8_t* at, const uint8_t* payload, int64_t size) noexcept nogil:
        """Write payload and digest into the record at `at`."""
        cdef int64_t head = LENGTH_PREFIX + ENTRY_FIXED_BYTES + self.digester.digest.size
        memcpy(at + head, payload, size)
        digest_sum(&self.digester.digest, at + 4, ENTRY_FIXED_BYTES, at + head, size, at + 36)

    def append(self, payload, int64_t entry=-1):
        """Seal the next entry, or the one with id `entry`, and return its Add; None while the window is full.

        ValueError if it is too large, KeyError if the id was added before; after `fail` the exception from `explain`.
        """
        cdef Py_buffer view
        cdef Add add
        cdef Slot* slot
        cdef Chunk chunk
        cdef uint8_t* at
        cdef int64_t id, size
        if self.error is not None:
            raise self.explain(self.next if entry < 0 else entry, self.error)
        PyObject_GetBuffer(payload, &view, PyBUF_SIMPLE)
        try:
            size = LENGTH_PREFIX + ENTRY_FIXED_BYTES + self.digester.digest.size + view.len
            id = self.admit(entry, size)
            chunk = self.chunk_for(size, id == self.head) if id >= 0 else None
            if chunk is None:
                return None
            slot = self.enter(id, size, view.len, chunk)
            at = slot.record
            if view.len < SEAL_ALONE_FROM:
                self.seal(at, <const uint8_t*> view.buf, view.len)
            else:
                with nogil:
                    self.seal(at, <const uint8_t*> view.buf, view.len)
                slot = self.find(id)             # meanwhile the table may have moved, or the window failed
            if slot is not NULL:
                slot.sealed = True
        finally:
            PyBuffer_Release(&view)
        add = Add.__new__(Add)
        add.window, add.entry = self, id
        return add

    def append_many(self, payloads, const int64_t[::1] offsets, int64_t first=0):
        """Append payloads[offsets[k]:offsets[k + 1]] for each k from `first` on, and return how many. It ends early
        if the window is full, and after about 1 MiB to let other threads take the GIL.

        ValueError if a payload is too large or an offset invalid; the payloads before it have been added.
        """
        cdef Py_buffer view
        cdef Slot* slot
        cdef Chunk chunk
        cdef int64_t head = LENGTH_PREFIX + ENTRY_FIXED_BYTES + self.digester.digest.size
        cdef int64_t k, id, size, taken = 0, bytes = 0
        if self.error is not None:
            raise self.explain(self.next, self.error)
        if first < 0:
            raise ValueError(f"first {first} must be at least 0")
        PyObject_GetBuffer(payloads, &view, PyBUF_SIMPLE)
        try:
            for k in range(first, offsets.shape[0] - 1):
                if not 0 <= offsets[k] <= offsets[k + 1] <= view.len:
                    raise ValueError(f"offsets {offsets[k]} and {offsets[k + 1]} do not fit {view.len} bytes of"
                                     f" payloads; they must ascend from 0 to {view.len}")
                size = offsets[k + 1] - offsets[k]
                id = self.admit(-1, head + size)
                chunk = self.chunk_for(head + size, id == self.head) if id >= 0 else None
                if chunk is None:
                    break
                slot = self.enter(id, head + size, size, chunk)
                self.seal(slot.record, <const uint8_t*> view.buf + offsets[k], size)
                slot.sealed = True
                taken += 1
                bytes += size
                if bytes >= MANY_BYTES:
                    break
        finally:
            PyBuffer_Release(&view)
        return taken

    @property
    def first_missing(self):
        """The lowest id that was not added yet."""
        cdef int64_t id = self.head if self.advanced else self.next
        while self.find(id) is not NULL:
            id += 1
        return id

    @property
    def stuck(self):
        """Whether no pending add can be acknowledged before the id at `head` is added."""
        return self.count > 0 and self.find(self.head) is NULL

    # Sending.

    @property
    def unsent(self):
        """The number of adds that were never taken."""
        return self.queued

    def take(self, double now, int64_t bytes_max=1 << 20):
        """Take the next adds for their first sending, up to `bytes_max` or one; return how many. See `batch`."""
        cdef int64_t count = 0, bytes = 0
        cdef Slot* slot
        while count < self.queued:
            slot = self.find(self.queue[count])
            if slot is NULL or not slot.sealed or (count and bytes + slot.record_bytes > bytes_max):
                break
            slot.sent, slot.sent_at = True, now
            bytes += slot.record_bytes
            self.batch_ids[count] = slot.id
            count += 1
        self.queued -= count
        memmove(self.queue, self.queue + count, self.queued * sizeof(int64_t))
        self.batch_count = count
        self.whole = None
        return count

    def batch(self, int64_t index):
        """Return (records, offsets, entries) of the taken adds for the bookie at `index`, or None if there are none."""
        cdef int64_t k, count = 0
        cdef int64_t[::1] mine
        if self.write_quorum == self.ensemble_size:
            if self.whole is None and self.batch_count:
                self.whole = self.gathered(self.batch_ids, self.batch_count)
            return self.whole
        mine = np.empty(self.batch_count, dtype=np.int64)
        for k in range(self.batch_count):
            if self.place(self.batch_ids[k], index) < self.write_quorum:
                mine[count] = self.batch_ids[k]
                count += 1
        return self.gathered(&mine[0], count) if count else None

    cdef object gathered(self, const int64_t* ids, int64_t count):
        """Return (records, offsets, entries) of pending entries: a view if the records are contiguous, else a copy."""
        cdef Slot* slot
        cdef Area* area = NULL
        cdef uint8_t* expected = NULL
        cdef uint8_t* start = NULL
        cdef bint one_piece = True
        cdef int64_t k
        offsets_array, entries_array = np.empty(count + 1, dtype=np.int64), np.empty(count, dtype=np.int64)
        cdef int64_t[::1] offsets = offsets_array
        cdef int64_t[::1] entries = entries_array
        cdef uint8_t[::1] out
        cdef Chunk chunk
        offsets[0] = 0
        for k in range(count):
            slot = self.find(ids[k])
            if slot is NULL:
                raise KeyError(ids[k])
            if k == 0:
                area, start = slot.area, slot.record
            elif slot.area != area or slot.record != expected:
                one_piece = False
            expected = slot.record + slot.record_bytes
            entries[k] = ids[k]
            offsets[k + 1] = offsets[k] + slot.record_bytes
        if one_piece:
            for chunk in self.chunks:
                if &chunk.area == area:
                    return memoryview(chunk)[start - area.base:expected - area.base], offsets_array, entries_array
        copy = np.empty(offsets[count], dtype=np.uint8)
        out = copy
        for k in range(count):
            slot = self.find(ids[k])
            memcpy(&out[offsets[k]], slot.record, slot.record_bytes)
        return copy.data, offsets_array, entries_array

    def records(self, const int64_t[::1] entries):
        """Return (records, offsets, entries) of these entries, at least one. KeyError if one is not pending."""
        return self.gathered(&entries[0], entries.shape[0])

    # Responses.

    def answered(self, int64_t index, const int64_t[::1] entries, const int32_t[::1] codes):
        """Record responses of the bookie at `index`; return (entry, code, whether it was incomplete) for those with
        errors.

        It acknowledges nothing; `release` does.
        """
        cdef Slot* slot
        cdef int64_t k, place
        failures = []
        for k in range(entries.shape[0]):
            slot = self.find(entries[k]) if entries[k] >= 0 else NULL
            if codes[k]:
                failures.append((entries[k], codes[k], slot is not NULL and not slot.complete))
            if slot is NULL or codes[k]:
                continue
            place = self.place(slot.id, index)
            if place >= self.write_quorum:
                continue
            slot.acked |= <uint64_t> 1 << place
            if not self.judged and popcount(slot.acked) >= self.ack_quorum:
                slot.complete = True
        return failures

    def quorate(self):
        """Return (entry, indices that hold it) of each incomplete entry with an ack quorum, ascending."""
        cdef Slot* slot
        cdef int64_t k
        found = []
        for k in range(self.mask + 1):
            slot = &self.slots[k]
            if slot.id != EMPTY and not slot.complete and popcount(slot.acked) >= self.ack_quorum:
                found.append((slot.id, self.indices(slot.id, slot.acked)))
        return sorted(found)

    def indices(self, int64_t entry, uint64_t places):
        """Return the ensemble indices of the given places in the write set of an entry, ascending."""
        return tuple(sorted((entry + p) % self.ensemble_size for p in range(self.write_quorum) if places >> p & 1))

    def complete(self, int64_t entry):
        """Complete this pending entry: the owner agrees with its acknowledgements."""
        cdef Slot* slot = self.find(entry)
        if slot is not NULL:
            slot.complete = True

    def release(self):
        """Acknowledge complete entries in order, unless `holding`; return how many."""
        return 0 if self.holding else self.advance()

    cdef int64_t advance(self):
        cdef int64_t first = self.head
        cdef Slot* slot = self.find(first)
        cdef Chunk chunk
        while slot is not NULL and slot.complete:
            self.head_length = self.head_length + slot.payload_bytes if self.advanced else slot.length
            self.remove(slot)
            self.head += 1
            slot = self.find(self.head)
        if self.head == first:
            return 0
        if not self.deferred:
            self.lac = self.head - 1
        while len(self.chunks) > 1 or (self.count == 0 and self.chunks):
            chunk = self.chunks[0]
            if chunk.area.live or (len(self.chunks) == 1 and chunk.area.size == CHUNK_LEAST):
                break
            self.chunk_bytes -= chunk.area.size
            del self.chunks[0]
        self.waiters.wake(first, self.head)
        return self.head - first

    def fail_index(self, int64_t entry, int64_t index):
        """Record that the bookie at `index` failed this pending entry; return all indices that have failed it."""
        cdef Slot* slot = self.find(entry)
        if slot is NULL:
            return ()
        if self.place(entry, index) < self.write_quorum:
            slot.failed |= <uint64_t> 1 << self.place(entry, index)
        return self.indices(entry, slot.failed)

    def unacked(self, int64_t index, int64_t first=0):
        """Return sent, pending entries from `first` on that lack the acknowledgement of the bookie at `index`."""
        cdef Slot* slot
        cdef int64_t k, place, count = 0
        found = np.empty(self.count, dtype=np.int64)
        cdef int64_t[::1] ids = found
        for k in range(self.mask + 1):
            slot = &self.slots[k]
            if slot.id == EMPTY or slot.id < first or not slot.sent:
                continue
            place = self.place(slot.id, index)
            if place < self.write_quorum and not slot.acked >> place & 1:
                ids[count] = slot.id
                count += 1
        if count:
            qsort(&ids[0], count, sizeof(int64_t), by_id)
        return found[:count]

    def unack(self, int64_t index):
        """Forget what `index` acknowledged, since another bookie is there; entries may be incomplete again."""
        cdef Slot* slot
        cdef int64_t k, place
        self.changes += 1
        for k in range(self.mask + 1):
            slot = &self.slots[k]
            if slot.id == EMPTY:
                continue
            place = self.place(slot.id, index)
            if place < self.write_quorum:
                slot.acked &= ~(<uint64_t> 1 << place)
                slot.failed &= ~(<uint64_t> 1 << place)
                if self.judged or popcount(slot.acked) < self.ack_quorum:
                    slot.complete = False

    def overdue(self, double before):
        """Return the lowest incomplete entry that was first sent before this time, or -1."""
        cdef Slot* slot
        cdef int64_t k, lowest = -1
        for k in range(self.mask + 1):
            slot = &self.slots[k]
            if slot.id == EMPTY or slot.complete or not slot.sent or slot.sent_at >= before:
                continue
            if lowest < 0 or slot.id < lowest:
                lowest = slot.id
        return lowest

    def raise_lac(self, int64_t lac):
        """Raise the LAC to at least this, for deferred ledgers. ValueError if it is not acknowledged."""
        if lac >= self.head:
            raise ValueError(f"LAC {lac} is above the last acknowledged entry {self.head - 1}")
        self.lac = max(self.lac, lac)

    def fail(self, error):
        """End all pending adds with `error` and refuse more; return their ids, ascending. The first error is kept."""
        cdef int64_t k
        pending = sorted([self.slots[k].id for k in range(self.mask + 1) if self.slots[k].id != EMPTY])
        if self.error is None:
            self.error = error
        memset(self.slots, 0xFF, (self.mask + 1) * sizeof(Slot))
        self.count = self.displaced = self.bytes = self.queued = self.batch_count = self.chunk_bytes = 0
        self.whole = None
        self.chunks = []
        self.waiters.wake_all()
        return pending

    # Waiting.

    def add(self, int64_t entry):
        """Return the Add of this entry, as `append` did."""
        cdef Add add = Add.__new__(Add)
        add.window, add.entry = self, entry
        return add

    @property
    def waiting(self):
        """The number of callers that wait for adds."""
        return len(self.waiters)


cdef class Add:
    """A pending add. Await it, or wait for it in another thread, until it is acknowledged or has failed."""

    def done(self):
        """Return whether it is acknowledged or has failed."""
        return self.entry < self.window.head or self.window.error is not None

    def result(self):
        """Return the entry id, or raise the exception that ended the add; RuntimeError if it is still pending."""
        if self.entry < self.window.head:
            return self.entry
        if self.window.error is not None:
            raise self.window.explain(self.entry, self.window.error)
        raise RuntimeError(f"ledger {self.window.ledger}, entry {self.entry}: not acknowledged yet")

    def wait(self, double timeout=-1):
        """Wait up to `timeout` seconds (-1: without limit) and return `done`. Not for the event loop's thread."""
        if self.done():
            return True
        lock = _new_lock()
        lock.acquire()
        self.window.waiters.enter(self.entry, lock)
        try:
            return self.done() or lock.acquire(True, timeout) or self.done()
        finally:
            self.window.waiters.leave(self.entry, lock)

    def tell(self, one):
        """Call one.set_result(None) in the event loop's thread when it ends, unless one.done() is true by then."""
        self.window.waiters.enter(self.entry, one)

    def __await__(self):
        if not self.done():
            future = _get_running_loop().create_future()
            self.window.waiters.enter(self.entry, future)
            try:
                if not self.done():              # a thread may have acknowledged it in the meantime
                    yield from future
            finally:
                self.window.waiters.leave(self.entry, future)
        return self.result()
