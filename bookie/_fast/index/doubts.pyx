"""A hash table of ledgers under a lock, and the packed form of a doubt."""
from libc.stdint cimport int64_t, uint8_t, uint32_t
from libc.stdlib cimport free, malloc

from bookie._fast.base.by_ledger cimport (
    Chained,
    chained_clear,
    chained_drop,
    chained_find,
    chained_free,
    chained_init,
    chained_put,
)
from bookie._fast.base.crc cimport crc32c
from bookie._fast.base.cursor cimport load_i64, load_u32, store_i64, store_u32
from bookie._fast.base.planted cimport PLANT_DOUBT_ENDED, bk_planted
from bookie._fast.base.sync cimport (
    bk_add,
    bk_load,
    bk_store,
    pthread_mutex_init,
    pthread_mutex_lock,
    pthread_mutex_unlock,
)
from bookie._fast.base.types cimport CORRUPT, OK

cdef struct Doubt:
    Chained chained
    bint lasting


cdef bint doubts_init(Doubts* doubts) noexcept nogil:
    pthread_mutex_init(&doubts.lock, NULL)
    doubts.count = 0
    doubts.ended = 0
    return chained_init(&doubts.table)


cdef void let_go(Chained* thing) noexcept nogil:
    free(thing)


cdef void doubts_free(Doubts* doubts) noexcept nogil:
    if doubts.table.buckets != NULL:
        chained_clear(&doubts.table, let_go)
        chained_free(&doubts.table)


cdef bint doubts_hold(Doubts* doubts, int64_t ledger) noexcept nogil:
    cdef bint found
    if bk_load(&doubts.count) == 0:
        return False
    pthread_mutex_lock(&doubts.lock)
    found = chained_find(&doubts.table, ledger) != NULL
    pthread_mutex_unlock(&doubts.lock)
    return found


cdef bint doubts_hold_since(Doubts* doubts, int64_t ledger, int64_t ended) noexcept nogil:
    if doubts_hold(doubts, ledger):
        return True
    return bk_load(&doubts.ended) != ended and not bk_planted(PLANT_DOUBT_ENDED)


cdef bint doubts_lasting(Doubts* doubts, int64_t ledger) noexcept nogil:
    cdef Doubt* doubt
    cdef bint lasting
    pthread_mutex_lock(&doubts.lock)
    doubt = <Doubt*> chained_find(&doubts.table, ledger)
    lasting = doubt != NULL and doubt.lasting
    pthread_mutex_unlock(&doubts.lock)
    return lasting


cdef bint doubts_add(Doubts* doubts, int64_t ledger, bint lasting) noexcept nogil:
    cdef Doubt* doubt
    pthread_mutex_lock(&doubts.lock)
    doubt = <Doubt*> chained_find(&doubts.table, ledger)
    if doubt == NULL:
        doubt = <Doubt*> malloc(sizeof(Doubt))
        if doubt != NULL:
            doubt.chained.ledger = ledger
            chained_put(&doubts.table, &doubt.chained)
    if doubt != NULL:
        doubt.lasting = lasting
    bk_store(&doubts.count, doubts.table.count)
    pthread_mutex_unlock(&doubts.lock)
    return doubt != NULL


cdef void doubts_drop(Doubts* doubts, int64_t ledger) noexcept nogil:
    cdef Chained* doubt
    pthread_mutex_lock(&doubts.lock)
    doubt = chained_find(&doubts.table, ledger)
    if doubt != NULL:
        bk_add(&doubts.ended, 1)     # before the doubt is gone, so that whoever misses it sees that it ended
        chained_drop(&doubts.table, doubt)
        free(doubt)
    bk_store(&doubts.count, doubts.table.count)
    pthread_mutex_unlock(&doubts.lock)


cdef object doubts_list(Doubts* doubts):
    cdef list found = []
    cdef Chained* at
    cdef uint32_t i
    # No holder of the lock needs the GIL, and all hold it only for a moment.
    pthread_mutex_lock(&doubts.lock)
    try:
        for i in range(doubts.table.size):
            at = doubts.table.buckets[i]
            while at != NULL:
                found.append((at.ledger, bool((<Doubt*> at).lasting)))
                at = at.next
    finally:
        pthread_mutex_unlock(&doubts.lock)
    found.sort()
    return found


cdef void doubt_pack(int64_t ledger, bint lasting, uint8_t* key, uint8_t* value) noexcept nogil:
    store_i64(key, ledger)
    store_u32(value + 4, 0)
    value[4] = DOUBT_VERSION
    value[5] = DOUBT_LASTING if lasting else 0
    store_u32(value, crc32c(crc32c(0, key, 8), value + 4, DOUBT_VALUE_BYTES - 4))


cdef Status doubt_unpack(const void* key, size_t key_size, const void* value, size_t size, int64_t* ledger,
                         bint* lasting) noexcept nogil:
    cdef const uint8_t* bytes_ = <const uint8_t*> value
    if key_size != 8 or size != DOUBT_VALUE_BYTES or bytes_[4] != DOUBT_VERSION:
        return CORRUPT
    if load_u32(bytes_) != crc32c(crc32c(0, key, 8), bytes_ + 4, DOUBT_VALUE_BYTES - 4):
        return CORRUPT
    ledger[0] = load_i64(key)
    lasting[0] = bytes_[5] & DOUBT_LASTING != 0
    return OK


def unpack_doubt(bytes key, bytes value):
    """Return (ledger, lasting); ValueError if the bytes are not a doubt."""
    cdef int64_t ledger
    cdef bint lasting
    if doubt_unpack(<const char*> key, len(key), <const char*> value, len(value), &ledger, &lasting) != OK:
        raise ValueError("these bytes are not a doubt: the header or the checksum is wrong")
    return ledger, bool(lasting)
