"""Durations of requests on an I/O loop."""
from libc.stdint cimport int64_t, uint8_t, uint32_t
from libc.stdlib cimport calloc, free

from bookie._fast.base.op_stats cimport OpStats, op_note, op_view
from bookie._fast.base.sync cimport now_ns
from bookie._fast.wire.request cimport (
    ADD_ENTRY,
    BATCH_READ_ENTRY,
    FENCE,
    FORCE_LEDGER,
    GET_BOOKIE_INFO,
    GET_LIST_OF_ENTRIES_OF_LEDGER,
    LONG_POLL,
    READ_ENTRY,
    READ_LAC,
    WRITE_CLOSE,
    WRITE_LAC,
)

NAMES = ("add", "read", "read_fence", "read_long_poll", "write_lac", "read_lac", "force", "bookie_info", "list_entries",
         "write_close", "other", "channel_write", "add_blocked", "fence_wait", "poll_pre_wait", "poll_wait",
         "poll_read", "read_queued")


cdef bint ops_init(LoopOps* ops, uint32_t journals) noexcept nogil:
    ops.adds = <OpStats*> calloc(journals, sizeof(OpStats))
    ops.journals = journals if ops.adds != NULL else 0
    return ops.adds != NULL


cdef void ops_free(LoopOps* ops) noexcept nogil:
    free(ops.adds)
    ops.adds = NULL
    ops.journals = 0


cdef int op_of(uint8_t op, uint32_t flags) noexcept nogil:
    if op == ADD_ENTRY:
        return LOOP_ADD
    if op == READ_ENTRY or op == BATCH_READ_ENTRY:
        if flags & FENCE:
            return LOOP_READ_FENCE
        if flags & LONG_POLL:
            return LOOP_READ_LONG_POLL
        return LOOP_READ if op == READ_ENTRY else LOOP_OTHER
    if op == WRITE_LAC:
        return LOOP_WRITE_LAC
    if op == READ_LAC:
        return LOOP_READ_LAC
    if op == FORCE_LEDGER:
        return LOOP_FORCE
    if op == GET_BOOKIE_INFO:
        return LOOP_BOOKIE_INFO
    if op == GET_LIST_OF_ENTRIES_OF_LEDGER:
        return LOOP_LIST_ENTRIES
    return LOOP_WRITE_CLOSE if op == WRITE_CLOSE else LOOP_OTHER


cdef void op_took(LoopOps* ops, int op, bint success, int64_t ns) noexcept nogil:
    op_note(&ops.times[op][success], ns, 1)


cdef void op_since(LoopOps* ops, int op, bint success, int64_t begun, int64_t round) noexcept nogil:
    if begun == round:
        op_now(ops, op, success)
    else:
        op_took(ops, op, success, now_ns() - begun)


cdef void ops_round(LoopOps* ops, int64_t begun, int64_t now) noexcept nogil:
    cdef int op, success
    if not ops.answered:
        return
    ops.answered = False
    for op in range(LOOP_OPS):
        for success in range(2):
            if ops.round[op][success]:
                op_note(&ops.times[op][success], now - begun, ops.round[op][success])
                ops.round[op][success] = 0


cdef tuple ops_view(const LoopOps* ops):
    return (
        {name: (op_view(&ops.times[at][0]), op_view(&ops.times[at][1])) for at, name in enumerate(NAMES)},
        [op_view(&ops.adds[at]) for at in range(ops.journals)],
    )
