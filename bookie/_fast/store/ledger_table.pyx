"""The ledgers of one shard. Like Apache BookKeeper, a bookie keeps all its ledgers in memory, about 150 bytes each."""
from libc.stdint cimport int64_t, uint8_t, uint32_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy

from bookie._fast.base.bounds cimport STORED_KEY_MAX, key_holds
from bookie._fast.base.by_ledger cimport (
    Chained,
    chained_clear,
    chained_drop,
    chained_find,
    chained_free,
    chained_init,
    chained_put,
)
from bookie._fast.base.planted cimport PLANT_ANY_KEY, PLANT_KEY_NOT_JOURNALED, bk_planted
from bookie._fast.base.sync cimport bk_add_relaxed, bk_load, now_ns
from bookie._fast.base.types cimport BAD_REQUEST, NO_MEMORY, OK, UNAUTHORIZED
from bookie._fast.index.codec cimport NOT_QUARANTINED
from bookie._fast.store.ledger_counts cimport FENCE_BYTES_MOST, LEDGER_BYTES_MOST

LEDGER_BYTES = LEDGER_BYTES_MOST + LEDGER_BYTES_MOST // 8 + FENCE_BYTES_MOST

cdef bint bytes_equal(const uint8_t* a, const uint8_t* b, uint32_t size) noexcept nogil:
    """Compare in time that does not depend on the contents, which may be secrets."""
    cdef uint8_t differ = 0
    cdef uint32_t i
    for i in range(size):
        differ |= a[i] ^ b[i]
    return differ == 0


cdef bint all_zero(const uint8_t* data, uint32_t size) noexcept nogil:
    cdef uint8_t any = 0
    cdef uint32_t i
    for i in range(size):
        any |= data[i]
    return any == 0


cdef bint ledgers_have_room(const LedgerMap* map, bint is_writer) noexcept nogil:
    cdef int64_t most = map.counts.known_most
    return bk_load(&map.counts.known) < (most if is_writer else most + most // 8)


cdef bint ledgers_init(LedgerMap* map, LedgerCounts* counts) noexcept nogil:
    map.counts = counts
    map.changed = NULL
    map.put = NULL
    map.closed = NULL
    return chained_init(&map.table) and chained_init(&map.fences) and chained_init(&map.quarantined)


cdef void free_ledger(Chained* thing) noexcept nogil:
    cdef Ledger* ledger = <Ledger*> thing
    free_key(ledger)
    free(ledger.explicit_lac)
    free(ledger)


cdef void free_plain(Chained* thing) noexcept nogil:
    free(thing)


cdef void ledgers_free(LedgerMap* map) noexcept nogil:
    chained_clear(&map.table, free_ledger)
    chained_free(&map.table)
    chained_clear(&map.fences, free_plain)
    chained_free(&map.fences)
    chained_clear(&map.quarantined, free_plain)
    chained_free(&map.quarantined)


cdef Ledger* ledger_find(const LedgerMap* map, int64_t id) noexcept nogil:
    return <Ledger*> chained_find(&map.table, id)


cdef Ledger* ledger_add(LedgerMap* map, int64_t id, const uint8_t* key, uint32_t key_size) noexcept nogil:
    cdef Ledger* ledger = <Ledger*> calloc(1, sizeof(Ledger))
    if ledger == NULL:
        return NULL
    if not ledger_set_key(ledger, key, key_size):
        free(ledger)
        return NULL
    ledger.chained.ledger = id
    ledger.fenced = ledger_kept_fence(map, id) != NULL
    ledger.last = -1
    ledger.lac = -1
    chained_put(&map.table, &ledger.chained)
    bk_add_relaxed(&map.counts.known, 1)
    return ledger


cdef bint ledger_keep_fence(LedgerMap* map, int64_t id, int64_t since_ms) noexcept nogil:
    cdef KeptFence* fence = ledger_kept_fence(map, id)
    if fence == NULL:
        fence = <KeptFence*> malloc(sizeof(KeptFence))
        if fence == NULL:
            return False
        fence.chained.ledger = id
        chained_put(&map.fences, &fence.chained)
        bk_add_relaxed(&map.counts.fences, 1)
    fence.since_ms = since_ms
    fence.renewed = False
    return True


cdef KeptFence* ledger_kept_fence(const LedgerMap* map, int64_t id) noexcept nogil:
    return <KeptFence*> chained_find(&map.fences, id)


cdef bint ledger_needs_kept_fence(LedgerMap* map, int64_t id) noexcept nogil:
    cdef KeptFence* fence = ledger_kept_fence(map, id)
    if fence == NULL:
        return False
    fence.since_ms = fences_now_ms(map.counts)
    fence.renewed = True
    return True


cdef int64_t fences_now_ms(const LedgerCounts* counts) noexcept nogil:
    return counts.fences_ms + (now_ns() - counts.fences_since_ns) // 1000000


cdef void ledger_drop_fence(LedgerMap* map, KeptFence* fence) noexcept nogil:
    chained_drop(&map.fences, &fence.chained)
    bk_add_relaxed(&map.counts.fences, -1)
    free(fence)


cdef bint ledger_quarantine(LedgerMap* map, Ledger* ledger, QuarantineReason reason) noexcept nogil:
    cdef Quarantined* entry = <Quarantined*> chained_find(&map.quarantined, ledger.chained.ledger)
    cdef uint32_t bit = <uint32_t> 1 << reason
    if reason == NOT_QUARANTINED:
        return False
    if not ledger.quarantine:
        ledger.quarantine = <uint8_t> reason
        ledger_mark_changed(map, ledger)
    if entry == NULL:
        entry = <Quarantined*> calloc(1, sizeof(Quarantined))
        if entry == NULL:
            return False         # it is in quarantine all the same, but is not listed before the next start
        entry.chained.ledger = ledger.chained.ledger
        chained_put(&map.quarantined, &entry.chained)
    if entry.reasons & bit:
        return False
    entry.reasons |= bit
    return True


cdef void ledger_forget_quarantine(LedgerMap* map, int64_t id) noexcept nogil:
    cdef Chained* entry = chained_find(&map.quarantined, id)
    if entry != NULL:
        chained_drop(&map.quarantined, entry)
        free(entry)


cdef void ledger_end_quarantine(LedgerMap* map, Ledger* ledger) noexcept nogil:
    ledger.quarantine = NOT_QUARANTINED
    ledger_mark_changed(map, ledger)
    ledger_forget_quarantine(map, ledger.chained.ledger)


cdef void ledger_remove(LedgerMap* map, Ledger* ledger) noexcept nogil:
    cdef Ledger** link = &map.changed
    if ledger.change != UNCHANGED:
        while link[0] != ledger:
            link = &link[0].next_changed
        link[0] = ledger.next_changed
    link = &map.closed
    if ledger.write_closed:
        while link[0] != ledger:
            link = &link[0].next_closed
        link[0] = ledger.next_closed
    ledger_forget_quarantine(map, ledger.chained.ledger)
    chained_drop(&map.table, &ledger.chained)
    bk_add_relaxed(&map.counts.known, -1)
    free_ledger(&ledger.chained)


cdef bint ledger_set_key(Ledger* ledger, const uint8_t* key, uint32_t key_size) noexcept nogil:
    cdef uint8_t* copy = <uint8_t*> ledger.key_own
    if key_size > sizeof(ledger.key_own):
        copy = <uint8_t*> malloc(key_size)
    if copy == NULL:
        return False
    if key_size:
        memcpy(copy, key, key_size)
    free_key(ledger)
    ledger.key = copy
    ledger.key_size = key_size
    return True


cdef inline void free_key(Ledger* ledger) noexcept nogil:
    if ledger.key != <uint8_t*> ledger.key_own:
        free(ledger.key)


cdef bint ledger_set_lac(Ledger* ledger, const uint8_t* packet, uint32_t size) noexcept nogil:
    cdef uint8_t* copy = <uint8_t*> malloc(size if size else 1)
    if copy == NULL:
        return False
    memcpy(copy, packet, size)
    free(ledger.explicit_lac)
    ledger.explicit_lac = copy
    ledger.explicit_lac_size = size
    return True


cdef bint has_key(const Ledger* ledger, const uint8_t* key, uint32_t key_size) noexcept nogil:
    return ledger.key_size == key_size and (bytes_equal(ledger.key, key, key_size) or bk_planted(PLANT_ANY_KEY))


cdef Status ledger_judge_key(const Ledger* ledger, const uint8_t* key, uint32_t key_size) noexcept nogil:
    if has_key(ledger, key, key_size):
        return OK
    if not all_zero(ledger.key, ledger.key_size):
        return UNAUTHORIZED
    return OK if key_holds(key_size) else BAD_REQUEST


cdef Status ledger_check_key(LedgerMap* map, Ledger* ledger, const uint8_t* key, uint32_t key_size) noexcept nogil:
    cdef Status status
    if has_key(ledger, key, key_size):
        return OK
    status = ledger_judge_key(ledger, key, key_size)
    return status if status != OK else ledger_take_key(map, ledger, key, key_size)


cdef Status ledger_take_key(LedgerMap* map, Ledger* ledger, const uint8_t* key, uint32_t key_size) noexcept nogil:
    if has_key(ledger, key, key_size):
        return OK
    if not all_zero(ledger.key, ledger.key_size) or key_size > STORED_KEY_MAX:
        return UNAUTHORIZED
    if all_zero(key, key_size):
        return OK                # zeros of another length say as little about the owner
    if not ledger_set_key(ledger, key, key_size):
        return NO_MEMORY
    ledger.key_logged = bk_planted(PLANT_KEY_NOT_JOURNALED)
    ledger_mark_changed(map, ledger)
    return OK


cdef void ledger_mark_changed(LedgerMap* map, Ledger* ledger) noexcept nogil:
    if ledger.change == PUT:
        ledger.change = PUT_CHANGED
    elif ledger.change == UNCHANGED:
        ledger.change = CHANGED
        ledger.next_changed = map.changed
        map.changed = ledger


cdef bint ledger_mark_closed(LedgerMap* map, Ledger* ledger) noexcept nogil:
    if ledger.write_closed:
        return False
    ledger.write_closed = True
    ledger.next_closed = map.closed
    map.closed = ledger
    return True


cdef Ledger* ledger_take_closed(LedgerMap* map) noexcept nogil:
    cdef Ledger* ledger = map.closed
    if ledger != NULL:
        map.closed = ledger.next_closed
        ledger.write_closed = False
    return ledger
