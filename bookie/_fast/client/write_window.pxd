"""The adds of one ledger from the time they are sealed until they are acknowledged in order; resends come from here.

No lock: every call holds the GIL. Adds may come from any thread, and so may what module `client.direct_adds` does; all
other calls come from the event loop's thread. The GIL is released only to digest a large payload and to gather records,
both on memory that stays valid meanwhile.
Memory: records lie one after the other in chunks; `bytes_max` bounds the records, and twice that the chunks. A bit of
a mask is a place in an entry's write set: place p of entry e is ensemble index (e + p) mod E.
"""
from libc.stdint cimport int64_t, uint8_t, uint64_t

from bookie._fast.client.add_waiters cimport AddWaiters
from bookie._fast.wire.digest cimport Digester

cdef enum:
    WRITE_QUORUM_MAX = 64        # bits of a mask

cdef struct Area:
    uint8_t* base
    int64_t size
    int64_t used
    int64_t live                 # records that are still pending

cdef class Chunk:
    # Memory that Python sees as a read-only buffer, which keeps it alive.
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
    int64_t length               # ledger length in the sealed entry
    Area* area
    double sent_at               # time of the first sending, on the owner's clock; valid if `sent`
    bint sent
    bint sealed
    bint complete                # an ack quorum has acknowledged it; if `judged`, the owner has agreed too

cdef class WriteWindow:
    cdef readonly Digester digester
    cdef readonly int64_t ledger
    cdef readonly int64_t ensemble_size
    cdef readonly int64_t write_quorum
    cdef readonly int64_t ack_quorum
    cdef readonly bint advanced
    cdef readonly bint deferred          # the LAC does not follow the head
    cdef readonly bint judged            # an ack quorum does not complete an entry; the owner calls `complete`
    cdef public bint holding             # nothing is acknowledged while this is set
    cdef public int64_t changes          # of the ensemble, or of how adds go to it; a direct add fails at one
    cdef readonly int64_t count_max
    cdef readonly int64_t bytes_max
    cdef readonly int64_t record_bytes_max
    cdef readonly int64_t next           # one past the highest id assigned
    cdef readonly int64_t head           # every lower id is acknowledged
    cdef readonly int64_t lac            # sealed into the next entry
    cdef public int64_t length           # payload bytes assigned so far; the next entry adds its own
    cdef readonly int64_t head_length    # payload bytes below `head`
    cdef readonly int64_t count          # pending entries
    cdef readonly int64_t bytes          # of their records
    cdef readonly object error           # why the window failed, or None
    cdef object explain                  # explain(entry, error): returns the exception that a caller gets
    cdef Slot* slots                     # by id, linear probing
    cdef int64_t mask
    cdef int64_t displaced               # slots that are not at id & mask
    cdef int64_t* queue                  # ids that were never sent, in order of their adds; as large as `slots`
    cdef int64_t queued
    cdef int64_t* batch_ids              # what `take` took
    cdef int64_t batch_count
    cdef object whole                    # the records of the batch if every index gets all of them
    cdef list chunks
    cdef int64_t chunk_bytes
    cdef AddWaiters waiters

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
    cdef object gathered(self, const int64_t* ids, int64_t count)

cdef class Add:
    cdef readonly WriteWindow window
    cdef readonly int64_t entry
