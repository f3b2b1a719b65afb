"""How long requests took on an I/O loop, by what they asked for and whether it went well. Its thread notes, any reads.

What is answered in the round in which it came in shares that round's two clock readings; it costs an addition then.
"""
from libc.stdint cimport int64_t, uint8_t, uint32_t

from bookie._fast.base.op_stats cimport OpStats

cdef enum LoopOp:
    LOOP_ADD = 0
    LOOP_READ = 1                # single and batched
    LOOP_READ_FENCE = 2
    LOOP_READ_LONG_POLL = 3
    LOOP_WRITE_LAC = 4
    LOOP_READ_LAC = 5
    LOOP_FORCE = 6
    LOOP_BOOKIE_INFO = 7
    LOOP_LIST_ENTRIES = 8
    LOOP_WRITE_CLOSE = 9
    LOOP_OTHER = 10              # never shown
    LOOP_CHANNEL_WRITE = 11      # writing all answers of a round
    LOOP_ADD_BLOCKED = 12        # waits for room
    LOOP_FENCE_WAIT = 13         # until the fence is durable
    LOOP_POLL_PRE_WAIT = 14      # until a long poll waits, or need not
    LOOP_POLL_WAIT = 15          # of a long poll; failed: its time was over
    LOOP_POLL_READ = 16          # of a long poll: the read after the wait
    LOOP_READ_QUEUED = 17        # until a thread of the read pool takes a read
    LOOP_OPS = 18

cdef struct LoopOps:
    OpStats times[LOOP_OPS][2]   # ns; by success
    int64_t round[LOOP_OPS][2]   # answered in this round
    bint answered                # something was
    OpStats* adds                # ns; by journal: adds that it made durable, not counted in `times`
    uint32_t journals

# False: no memory.
cdef bint ops_init(LoopOps* ops, uint32_t journals) noexcept nogil
cdef void ops_free(LoopOps* ops) noexcept nogil
# The LoopOp of a request.
cdef int op_of(uint8_t op, uint32_t flags) noexcept nogil
# Answered in the round in which it came in.
cdef inline void op_now(LoopOps* ops, int op, bint success) noexcept nogil:
    ops.round[op][success] += 1
    ops.answered = True
# Answered `ns` after it came in.
cdef void op_took(LoopOps* ops, int op, bint success, int64_t ns) noexcept nogil
# What began in the round of `begun` is answered in the one of `round`.
cdef void op_since(LoopOps* ops, int op, bint success, int64_t begun, int64_t round) noexcept nogil
# The round that began at `begun` is over: note what it answered.
cdef void ops_round(LoopOps* ops, int64_t begun, int64_t now) noexcept nogil
# {name: (refused or failed, went well)} as OpViews; and OpViews of `adds`.
cdef tuple ops_view(const LoopOps* ops)
# No Python surface: other compiled modules cimport this one.
