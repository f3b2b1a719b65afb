"""Durations of requests on an I/O loop, by kind and success. Its thread records, any thread reads.

Requests that are answered in the round in which they came in share its two clock readings, and cost one addition.
"""
from libc.stdint cimport int64_t, uint8_t, uint32_t

from bookie._fast.base.op_stats cimport OpStats

cdef enum LoopOp:
    LOOP_ADD = 0
    LOOP_READ = 1                # of a single entry
    LOOP_READ_FENCE = 2
    LOOP_READ_LONG_POLL = 3
    LOOP_WRITE_LAC = 4
    LOOP_READ_LAC = 5
    LOOP_FORCE = 6
    LOOP_BOOKIE_INFO = 7
    LOOP_LIST_ENTRIES = 8
    LOOP_WRITE_CLOSE = 9
    LOOP_OTHER = 10              # not shown; batch reads have histograms of their own
    LOOP_CHANNEL_WRITE = 11      # writing all responses of a round
    LOOP_ADD_BLOCKED = 12        # waits for room
    LOOP_FENCE_WAIT = 13         # until a fence is durable
    LOOP_POLL_PRE_WAIT = 14      # until a long poll waits, or need not
    LOOP_POLL_WAIT = 15          # the wait of a long poll; a failure is a timeout
    LOOP_POLL_READ = 16          # the read of a long poll after its wait
    LOOP_READ_QUEUED = 17        # until a thread of the read pool takes a read
    LOOP_OPS = 18

cdef struct LoopOps:
    OpStats times[LOOP_OPS][2]   # ns; by success
    int64_t round[LOOP_OPS][2]   # number answered in this round
    bint answered                # something was answered in this round
    OpStats* adds                # ns; by journal: adds that it made durable, not counted in `times`
    uint32_t journals

# Return False if there is no memory.
cdef bint ops_init(LoopOps* ops, uint32_t journals) noexcept nogil
cdef void ops_free(LoopOps* ops) noexcept nogil
# Return the LoopOp of a request.
cdef int op_of(uint8_t op, uint32_t flags) noexcept nogil
# Record a request answered in the round in which it came in.
cdef inline void op_now(LoopOps* ops, int op, bint success) noexcept nogil:
    ops.round[op][success] += 1
    ops.answered = True
# Record a request answered `ns` after it came in.
cdef void op_took(LoopOps* ops, int op, bint success, int64_t ns) noexcept nogil
# Record a request that came in in the round of `begun` and is answered in the round of `round`.
cdef void op_since(LoopOps* ops, int op, bint success, int64_t begun, int64_t round) noexcept nogil
# End the round that began at `begun`, and record what it answered.
cdef void ops_round(LoopOps* ops, int64_t begun, int64_t now) noexcept nogil
# Return {name: (refused or failed, succeeded)} as OpViews, and OpViews of `adds`.
cdef tuple ops_view(const LoopOps* ops)
# Python does not see this module: other compiled modules cimport it.
