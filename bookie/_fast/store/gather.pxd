"""Gathering an answer: which slices of memory hold the wanted entries, and what else an answer tells of a ledger.

An Answer references memory by pinned slices; whoever finished with it calls `answer_release`. I/O loops gather what is
in memory; the read pool (module `store.read_path`) gathers again once it has brought the rest. Any thread, under the
ledger's shard.
"""
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from bookie._fast.base.types cimport ENTRY_HEADER_MIN, LENGTH_PREFIX, Slice, Status
from bookie._fast.cache.pages cimport Region
from bookie._fast.cache.runs cimport Run
from bookie._fast.store.stores cimport Store, Storage

cdef enum:
    SLICES_MOST = 128
    COUNT_MOST = 0x7FFFFFFF
    RECORD_LEAST = LENGTH_PREFIX + ENTRY_HEADER_MIN      # bytes of the smallest record that there can be

cdef struct ReadRequest:
    int64_t ledger
    int64_t entry            # ENTRY_ID_LAST allowed
    uint64_t request_id
    uint64_t bytes           # limit on records `u32 length | entry`; the first entry is always taken
    uint32_t per_entry       # bytes that each entry counts besides its record
    uint32_t count           # entries wanted, at least 1
    uint32_t flags           # of the Request; with PIGGYBACK `entry` is wanted only when the LAC has reached it
    uint8_t protocol
    uint8_t op
    uint8_t version
    bint wants_lac           # the answer is to tell the ledger's LAC
    bint learns              # nothing is read: the LAC only has to become known
    int64_t previous_lac     # with LONG_POLL
    int64_t timeout_ms       # with TIMED
    int64_t begun            # monotonic ns of the round in which it came in
    int64_t phase_ns         # of that in which its present phase began: a long poll's or fence's wait, then its read
    int64_t queued_ns        # how long it waited for a thread, once one has it
    int64_t lac_time_ms      # when the LAC rose that ended the wait of this read; 0: it did not
    void* owner              # the connection; the pool hands it back untouched

cdef struct Answer:
    Status status            # OK, or the reason why there is no entry at all; PENDING: `next` is not in memory
    int64_t next             # the entry after the last one taken
    int64_t lac              # the highest LAC known
    bint has_lac
    uint32_t count
    uint64_t bytes
    int64_t ahead            # reads come near the end of what was read ahead: go on from this entry; -1: no
    bint from_disk           # it waited for a read of the disk; the first one began here:
    uint32_t log_id
    uint64_t position
    uint32_t slices
    Slice parts[SLICES_MOST]
    Region* regions[SLICES_MOST]

cdef void answer_begin(Answer* answer, const ReadRequest* request) noexcept nogil
# What is in memory now. PENDING when entry `answer.next` must come from the disk, or when the LAC is wanted and not
# known yet (slices so far stay pinned).
cdef void answer_from_memory(Storage* stores, const ReadRequest* request, Answer* answer) noexcept nogil
# Reference what fits of a run that holds `answer.next` at `slot`; how many entries. With the shard's lock.
cdef uint32_t answer_take(const ReadRequest* request, Answer* answer, const Run* run, uint32_t slot,
                          int64_t upper) noexcept nogil
cdef bint answer_complete(const ReadRequest* request, const Answer* answer) noexcept nogil
cdef void answer_release(Answer* answer) noexcept nogil
# Let go of a region; the last one to do so frees a private one.
cdef void region_unpin(Region* region) noexcept nogil
# Whether it references a half of the write cache that is wanted back: it should go with what it has.
cdef bint answer_keeps_half(const Store* store, const Answer* answer) noexcept nogil
