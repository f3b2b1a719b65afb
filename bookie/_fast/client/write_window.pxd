"""The adds of one ledger that are not yet acknowledged in order: sealed once, kept until then, resent from there.

No lock: every call holds the GIL. Adds may come from any thread; all else from the thread of the event loop. The GIL is
given up only to digest a large payload and to gather records, both on memory that cannot go away meanwhile.
Memory: records lie one behind the other in chunks; `bytes_max` bounds the records, twice that the chunks.
A bit of a mask is a place in an entry's write set: place p of entry e is ensemble index (e + p) mod E.
"""
from libc.stdint cimport int64_t, uint8_t, uint64_t

from bookie._fast.wire.digest cimport Digester

cdef enum:
    WRITE_QUORUM_MAX = 64        # bits of a mask

cdef struct Area:
    uint8_t* base
    int64_t size
    int64_t used
    int64_t live                 # records in it that are still pending

cdef class Chunk:
    # Python sees its memory as a read-only buffer, which keeps it alive.
    cdef Area area
    cdef Py_ssize_t shape
    cdef Py_ssize_t stride

cdef struct Slot:
    int64_t id                   # -1: empty
    uint64_t acked
    uint64_t failed
    uint8_t* record              # u32 length | entry
    int64_t record_bytes
    int64_t payload_bytes
    int64_t length               # as sealed into the entry
    Area* area
    double sent_at               # on the owner's clock, once `sent`
    bint sent
    bint sealed
    bint complete                # an ack quorum holds it; with `judged`, the owner has agreed

cdef class WriteWindow:
    cdef readonly Digester digester
    cdef readonly int64_t ledger
    cdef readonly int64_t ensemble_size
    cdef readonly int64_t write_quorum
    cdef readonly int64_t ack_quorum
    cdef readonly bint advanced
    cdef readonly bint deferred          # the LAC does not follow the head
    cdef readonly bint judged            # an ack quorum alone does not complete an entry: `complete` does
    cdef public bint holding             # nothing is acknowledged meanwhile
    cdef readonly int64_t count_max
    cdef readonly int64_t bytes_max
    cdef readonly int64_t record_bytes_max
    cdef readonly int64_t next           # one past the highest id given out
    cdef readonly int64_t head           # every id below is acknowledged
    cdef readonly int64_t lac            # sealed into the next entry
    cdef public int64_t length           # payload bytes given out; sealed into the next entry, its own added
    cdef readonly int64_t head_length    # the same below `head`
    cdef readonly int64_t count          # pending
    cdef readonly int64_t bytes          # their records
    cdef readonly object error           # why the window failed, or None
    cdef object explain                  # explain(entry, error): the exception that a caller gets
    cdef Slot* slots                     # by id, linear probing
    cdef int64_t mask
    cdef int64_t displaced               # slots that do not stand at id & mask
    cdef int64_t* queue                  # ids that were never sent, in the order of their adds; one room for each slot
    cdef int64_t queued
    cdef int64_t* batch_ids              # what `take` took
    cdef int64_t batch_count
    cdef object whole                    # its records, if they lie in one piece and go to every index
    cdef list chunks
    cdef int64_t chunk_bytes
    cdef dict waiters

    cdef Slot* find(self, int64_t id) noexcept nogil
    cdef int64_t place(self, int64_t id, int64_t index) noexcept nogil
    cdef int grow(self) except -1
    cdef Slot* insert(self, int64_t id) noexcept nogil
    cdef void remove(self, Slot* slot) noexcept nogil
    cdef Chunk chunk_for(self, int64_t size, bint urgent)
    cdef int64_t admit(self, int64_t entry, int64_t size) except -2
    cdef Slot* enter(self, int64_t id, int64_t size, int64_t payload_bytes, Chunk chunk)
    cdef void seal(self, uint8_t* at, const uint8_t* payload, int64_t size) noexcept nogil
    cdef int64_t advance(self)
    cdef int wake(self, int64_t first, int64_t end) except -1
    cdef object gathered(self, const int64_t* ids, int64_t count)

cdef class Add:
    cdef readonly WriteWindow window
    cdef readonly int64_t entry
