"""Verdicts on records, from remembered runs. It owns nothing but these."""
from libc.stdint cimport INT64_MAX, int64_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free

from bookie._fast.base.sync cimport pthread_mutex_lock, pthread_mutex_unlock
from bookie._fast.base.types cimport CORRUPT, LENGTH_PREFIX, NO_ENTRY, NO_MEMORY, OK
from bookie._fast.index.codec cimport IndexRun
from bookie._fast.index.location cimport index_run_at
from bookie._fast.store.ledger_table cimport Ledger, ledger_find
from bookie._fast.store.stores cimport Shard, shard_of


cdef Status liveness_init(Liveness* liveness, Store* store, IndexReader* reader) noexcept nogil:
    liveness.store = store
    liveness.reader = reader
    liveness.slots = <Remembered*> calloc(LIVENESS_RUNS, sizeof(Remembered))
    return OK if liveness.slots != NULL else NO_MEMORY


cdef void liveness_free(Liveness* liveness) noexcept nogil:
    free(liveness.slots)
    liveness.slots = NULL


cdef void liveness_clear(Liveness* liveness) noexcept nogil:
    cdef uint32_t i
    for i in range(LIVENESS_RUNS):
        liveness.slots[i].ledger = -1


cdef bint look_up(Store* store, int64_t ledger_id, bint* held) noexcept nogil:
    """Return whether a ledger exists; `held` tells whether it is in quarantine."""
    cdef Shard* shard = shard_of(store, ledger_id)
    cdef Ledger* ledger
    cdef bint known
    pthread_mutex_lock(&shard.lock)
    ledger = ledger_find(&shard.ledgers, ledger_id)
    known = ledger != NULL
    held[0] = known and ledger.quarantine
    pthread_mutex_unlock(&shard.lock)
    return known


cdef bint ledger_is_known(Store* store, int64_t ledger) noexcept nogil:
    cdef bint held
    return look_up(store, ledger, &held)


cdef Status remember(Liveness* liveness, Remembered* slot, int64_t ledger, int64_t entry) noexcept nogil:
    cdef IndexRun run
    cdef uint64_t start = 0
    cdef uint32_t i
    cdef Status status = index_run_at(liveness.reader, ledger, entry, &run)
    slot.ledger = -1
    if status != OK and status != NO_ENTRY:
        return status
    slot.stored = status == OK and run.first <= entry
    slot.known = look_up(liveness.store, ledger, &slot.held)
    if not slot.stored:
        slot.first = entry
        slot.last = run.first - 1 if status == OK else INT64_MAX
        slot.ledger = ledger
        return OK
    for i in range(run.count):
        slot.starts[i] = <uint32_t> start
        slot.lengths[i] = run.lengths[i]
        start += LENGTH_PREFIX + <uint64_t> run.lengths[i] if run.lengths[i] else 0
    if start > <uint64_t> 0xFFFFFFFF or run.offset > <uint64_t> 0xFFFFFFFF:
        return CORRUPT           # no log is that long
    slot.first = run.first
    slot.last = run.first + run.count - 1
    slot.log_id = run.log_id
    slot.base = <uint32_t> run.offset
    slot.ledger = ledger
    return OK


cdef Status judge(Liveness* liveness, uint32_t log_id, const LogRecord* record, Verdict* verdict) noexcept nogil:
    cdef uint64_t hash = <uint64_t> record.ledger * <uint64_t> 0x9E3779B97F4A7C15
    cdef Remembered* slot = &liveness.slots[(hash >> 32) % LIVENESS_RUNS]
    cdef uint32_t at
    cdef Status status
    if slot.ledger != record.ledger or record.entry < slot.first or record.entry > slot.last:
        status = remember(liveness, slot, record.ledger, record.entry)
        if status != OK:
            return status
    if slot.stored:
        at = <uint32_t> (record.entry - slot.first)
        if slot.lengths[at] == 0:        # a gap, which no other run holds either
            verdict[0] = ORPHAN if slot.known else DELETED
        elif slot.log_id != log_id or <uint64_t> slot.base + slot.starts[at] != record.offset:
            verdict[0] = ELSEWHERE
        else:
            verdict[0] = LIVE if slot.lengths[at] == record.length else DISAGREES
    else:
        verdict[0] = ORPHAN if slot.known else DELETED
    if slot.held and (verdict[0] == ELSEWHERE or verdict[0] == ORPHAN):
        verdict[0] = HELD
    return OK
