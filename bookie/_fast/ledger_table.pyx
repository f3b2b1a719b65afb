"""The ledgers of one shard. All of a bookie's ledgers stay in memory, about 150 bytes each, as upstream keeps them."""
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy

from bookie._fast.planted cimport PLANT_ANY_KEY, bk_planted
from bookie._fast.run_codec cimport MASTER_KEY_MAX
from bookie._fast.types cimport OK, UNAUTHORIZED

cdef enum:
    BUCKETS_FIRST = 16


cdef inline uint64_t mix(int64_t ledger) noexcept nogil:
    cdef uint64_t h = <uint64_t> ledger * <uint64_t> 0x9E3779B97F4A7C15
    return h ^ (h >> 29)


cdef bint bytes_equal(const uint8_t* a, const uint8_t* b, uint32_t size) noexcept nogil:
    """Constant time in the contents: secrets are compared with it."""
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


cdef bint ledgers_init(LedgerMap* map) noexcept nogil:
    map.size = BUCKETS_FIRST
    map.count = 0
    map.dirty = NULL
    map.closed = NULL
    map.buckets = <Ledger**> calloc(BUCKETS_FIRST, sizeof(Ledger*))
    return map.buckets != NULL


cdef void ledgers_free(LedgerMap* map) noexcept nogil:
    cdef uint32_t i
    cdef Ledger* at
    cdef Ledger* following
    if map.buckets == NULL:
        return
    for i in range(map.size):
        at = map.buckets[i]
        while at != NULL:
            following = at.next
            free(at.key)
            free(at.explicit_lac)
            free(at)
            at = following
    free(map.buckets)
    map.buckets = NULL


cdef Ledger* ledger_find(const LedgerMap* map, int64_t id) noexcept nogil:
    cdef Ledger* at = map.buckets[mix(id) & (map.size - 1)]
    while at != NULL and at.id != id:
        at = at.next
    return at


cdef void grow(LedgerMap* map) noexcept nogil:
    cdef uint32_t size = map.size * 2
    cdef uint32_t i
    cdef uint64_t to
    cdef Ledger* at
    cdef Ledger* following
    cdef Ledger** buckets = <Ledger**> calloc(size, sizeof(Ledger*))
    if buckets == NULL:
        return
    for i in range(map.size):
        at = map.buckets[i]
        while at != NULL:
            following = at.next
            to = mix(at.id) & (size - 1)
            at.next = buckets[to]
            buckets[to] = at
            at = following
    free(map.buckets)
    map.buckets = buckets
    map.size = size


cdef Ledger* ledger_add(LedgerMap* map, int64_t id, const uint8_t* key, uint32_t key_size) noexcept nogil:
    cdef Ledger* ledger
    cdef uint64_t to
    if map.count >= map.size * 2:
        grow(map)
    ledger = <Ledger*> calloc(1, sizeof(Ledger))
    if ledger == NULL:
        return NULL
    if not ledger_set_key(ledger, key, key_size):
        free(ledger)
        return NULL
    ledger.id = id
    ledger.last = -1
    ledger.lac = -1
    to = mix(id) & (map.size - 1)
    ledger.next = map.buckets[to]
    map.buckets[to] = ledger
    map.count += 1
    return ledger


cdef void ledger_remove(LedgerMap* map, Ledger* ledger) noexcept nogil:
    cdef Ledger** link = &map.dirty
    if ledger.dirty:
        while link[0] != ledger:
            link = &link[0].next_dirty
        link[0] = ledger.next_dirty
    link = &map.closed
    if ledger.write_closed:
        while link[0] != ledger:
            link = &link[0].next_closed
        link[0] = ledger.next_closed
    link = &map.buckets[mix(ledger.id) & (map.size - 1)]
    while link[0] != ledger:
        link = &link[0].next
    link[0] = ledger.next
    map.count -= 1
    free(ledger.key)
    free(ledger.explicit_lac)
    free(ledger)


cdef bint ledger_set_key(Ledger* ledger, const uint8_t* key, uint32_t key_size) noexcept nogil:
    cdef uint8_t* copy = <uint8_t*> malloc(key_size if key_size else 1)
    if copy == NULL:
        return False
    memcpy(copy, key, key_size)
    free(ledger.key)
    ledger.key = copy
    ledger.key_size = key_size
    return True


cdef bint ledger_set_lac(Ledger* ledger, const uint8_t* packet, uint32_t size) noexcept nogil:
    cdef uint8_t* copy = <uint8_t*> malloc(size if size else 1)
    if copy == NULL:
        return False
    memcpy(copy, packet, size)
    free(ledger.explicit_lac)
    ledger.explicit_lac = copy
    ledger.explicit_lac_size = size
    return True


cdef Status ledger_check_key(LedgerMap* map, Ledger* ledger, const uint8_t* key, uint32_t key_size) noexcept nogil:
    if ledger.key_size == key_size and (bytes_equal(ledger.key, key, key_size) or bk_planted(PLANT_ANY_KEY)):
        return OK
    if key_size > MASTER_KEY_MAX:
        return UNAUTHORIZED      # nobody has such a key
    if all_zero(ledger.key, ledger.key_size) and ledger_set_key(ledger, key, key_size):
        ledger.key_logged = False
        ledger_mark_dirty(map, ledger)
        return OK
    return UNAUTHORIZED


cdef void ledger_mark_dirty(LedgerMap* map, Ledger* ledger) noexcept nogil:
    if ledger.dirty:
        return
    ledger.dirty = True
    ledger.next_dirty = map.dirty
    map.dirty = ledger


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
