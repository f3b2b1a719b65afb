"""Assembling answers: which slices of memory hold the wanted entries, and the read pool that brings cold runs into
memory.

An Answer references memory by pinned slices; whoever finished with it calls `answer_release`. I/O loops assemble what
is in memory; what is not goes to the pool, whose threads may wait for the disk.
"""
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

from bookie._fast.loads cimport Loads
from bookie._fast.location_index cimport IndexReader
from bookie._fast.runs cimport Region
from bookie._fast.stores cimport Stores
from bookie._fast.sync cimport pthread_cond_t, pthread_mutex_t
from bookie._fast.types cimport Slice, Status
from bookie._fast.waker cimport Waker

cdef enum:
    SLICES_MOST = 128
    COUNT_MOST = 0x7FFFFFFF

cdef struct ReadRequest:
    int64_t ledger
    int64_t entry            # ENTRY_ID_LAST allowed
    uint64_t request_id
    uint64_t bytes           # limit on records `u32 length | entry`; the first entry is always taken
    uint32_t count           # entries wanted, at least 1
    uint32_t flags           # of the Request
    uint8_t protocol
    uint8_t op
    uint8_t version
    void* owner              # the connection; the pool hands it back untouched

cdef struct Answer:
    Status status            # OK, or the reason why there is no entry at all; PENDING: `next` is not in memory
    int64_t next             # the entry after the last one taken
    uint32_t count
    uint64_t bytes
    int64_t ahead            # reads come near the end of what was read ahead: go on from this entry; -1: no
    uint32_t slices
    Slice parts[SLICES_MOST]
    Region* regions[SLICES_MOST]

cdef struct Inbox:
    # Where a loop's finished jobs wait; newest first.
    pthread_mutex_t lock
    PoolJob* jobs
    bint closed              # nobody will look at answers any more
    int64_t owed             # jobs submitted and not taken back; the loop's own
    int64_t owed_max
    int64_t refused          # jobs over that
    Waker* waker

cdef struct PoolJob:
    ReadRequest request
    Answer answer
    Inbox* inbox             # NULL: only read ahead from request.entry, nobody waits for it
    PoolJob* next

cdef struct ReadPool:
    Stores* stores
    Loads loads
    pthread_mutex_t lock     # guards the queue
    pthread_cond_t filled
    PoolJob* head
    PoolJob* tail
    int64_t queued
    int64_t queued_max
    int64_t served           # atomic
    bint stopping

# What is in memory now. PENDING when entry `answer.next` must come from the disk (slices so far stay pinned).
cdef void answer_begin(Answer* answer, const ReadRequest* request) noexcept nogil
cdef void answer_from_memory(Stores* stores, const ReadRequest* request, Answer* answer) noexcept nogil
cdef void answer_release(Answer* answer) noexcept nogil
cdef void region_unpin(Region* region) noexcept nogil

# Let the pool read ahead, if the answer tells from where; never waits.
cdef void pool_read_ahead(ReadPool* pool, int64_t ledger, Answer* answer) noexcept nogil
# TOO_MANY_REQUESTS when the queue is full, or the inbox is owed as many as it may (fences and high priority aside).
# The inbox gets the job back with its answer; it owns it then (`free`).
cdef Status pool_submit(ReadPool* pool, const ReadRequest* request, Inbox* inbox) noexcept nogil

cdef class ReadPoolRoom:
    cdef ReadPool pool
    cdef object stores_room
