"""Gathering a response: which slices of memory hold the wanted entries, and the LAC that goes with them.

An Answer refers to memory by pinned slices, until `answer_release`. I/O loops gather what is in memory; the read pool
(module `store.read_path`) gathers again once it has read the rest. Any thread; the functions take the ledger's shard
lock unless stated otherwise.
"""
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from bookie._fast.base.types cimport ENTRY_HEADER_MIN, LENGTH_PREFIX, Slice, Status
from bookie._fast.cache.pages cimport Region
from bookie._fast.cache.runs cimport Run
from bookie._fast.store.stores cimport Storage

cdef enum:
    SLICES_MOST = 128
    COUNT_MOST = 0x7FFFFFFF
    RECORD_LEAST = LENGTH_PREFIX + ENTRY_HEADER_MIN      # size of the smallest possible record

cdef struct ReadRequest:
    int64_t ledger
    int64_t entry            # may be ENTRY_ID_LAST
    uint64_t request_id
    uint64_t bytes           # limit on the records `u32 length | entry`; the first entry is always taken
    uint32_t per_entry       # bytes that each entry counts in addition to its record
    uint32_t count           # maximum number of entries, at least 1
    uint32_t flags           # of the Request; with PIGGYBACK, `entry` is only wanted if the LAC has reached it
    uint8_t protocol
    uint8_t op
    uint8_t version
    bint wants_lac           # the response needs the ledger's LAC
    bint learns              # nothing is read; only the LAC has to be learnt
    int64_t previous_lac     # with LONG_POLL
    int64_t timeout_ms       # with TIMED
    int64_t begun            # monotonic ns of the round in which the request came in
    int64_t phase_ns         # the same for the current phase: the wait of a long poll or fence, then its read
    int64_t queued_ns        # how long it waited for a thread of the pool, once it has one
    int64_t lac_time_ms      # when the LAC rose, if that ended the wait of this read; else 0
    void* owner              # the connection; the pool returns it untouched

cdef struct Answer:
    Status status            # OK, or why there is no entry at all; PENDING: `next` is not in memory
    int64_t next             # the entry after the last one taken
    int64_t lac              # the highest LAC known
    bint has_lac
    uint32_t count
    uint64_t bytes
    bint doubted             # the ledger was in limbo or quarantine when `next` was not in memory
    int64_t ahead            # read ahead from this entry: reads get near the end of what was read ahead; -1: no
    bint from_disk           # it waited for the disk; the first read began here:
    uint32_t log_id
    uint64_t position
    uint32_t slices
    Slice parts[SLICES_MOST]
    Region* regions[SLICES_MOST]

cdef void answer_begin(Answer* answer, const ReadRequest* request) noexcept nogil
# Gather what is in memory now. PENDING if entry `answer.next` must be read from disk, or if the LAC is wanted and not
# known yet; the slices gathered so far stay pinned.
cdef void answer_from_memory(Storage* stores, const ReadRequest* request, Answer* answer) noexcept nogil
# Take as many entries as fit of a run that holds `answer.next` at `slot`; return their number. With the shard's lock.
cdef uint32_t answer_take(const ReadRequest* request, Answer* answer, const Run* run, uint32_t slot,
                          int64_t upper) noexcept nogil
cdef bint answer_complete(const ReadRequest* request, const Answer* answer) noexcept nogil
cdef void answer_release(Answer* answer) noexcept nogil
# Unpin a region; the last pin of a private one frees it.
cdef void region_unpin(Region* region) noexcept nogil
# Return whether it pins a half of the write cache that is wanted, so that it should be sent as it is.
cdef bint answer_keeps_half(const Answer* answer) noexcept nogil
