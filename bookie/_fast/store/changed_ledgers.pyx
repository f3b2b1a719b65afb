"""Records are copied in batches under the shard's lock, put without it, and settled in batches again."""
from libc.stdint cimport uint8_t, uint32_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

from bookie._fast.base.bounds cimport STORED_KEY_MAX, STORED_LAC_MAX
from bookie._fast.base.crash_steps cimport STEP_LEDGER_PUT, step
from bookie._fast.base.planted cimport (
    PLANT_CHANGE_LOST,
    PLANT_FAILED_COMMIT_SETTLED,
    PLANT_FENCE_NOT_INDEXED,
    bk_planted,
)
from bookie._fast.base.sync cimport pthread_mutex_lock, pthread_mutex_unlock
from bookie._fast.base.types cimport NO_MEMORY, OK
from bookie._fast.index.ledger_tables cimport index_put_ledger
from bookie._fast.index.location cimport LedgerRecord
from bookie._fast.store.ledger_table cimport CHANGED, PUT, UNCHANGED, Ledger, LedgerMap
from bookie._fast.store.stores cimport SHARDS, Shard

cdef enum:
    LEDGERS_A_LOOK = 64              # copied or settled in one step, so that a shard's lock is held for microseconds
    BYTES_A_LOOK = 1 << 16           # the same for bytes of keys and LACs; further ledgers wait for the next step
    BYTES_MOST = BYTES_A_LOOK + STORED_KEY_MAX + STORED_LAC_MAX

cdef struct Batch:
    LedgerRecord records[LEDGERS_A_LOOK]
    uint32_t count
    uint32_t used
    uint8_t bytes[BYTES_MOST]        # keys and LACs; hardly any of it is ever used


cdef bint ledgers_changed(Store* store) noexcept nogil:
    cdef uint32_t i
    cdef bint changed = False
    for i in range(SHARDS):
        pthread_mutex_lock(&store.shards[i].lock)
        changed = changed or store.shards[i].ledgers.changed != NULL
        pthread_mutex_unlock(&store.shards[i].lock)
    return changed


cdef const uint8_t* copied(Batch* batch, const uint8_t* data, uint32_t size) noexcept nogil:
    cdef uint8_t* to = &batch.bytes[batch.used]
    if size > BYTES_MOST - batch.used:
        return NULL                  # too long for the index, which refuses it before it reads the value
    if size:
        memcpy(to, data, size)       # `data` may be NULL if it is empty
    batch.used += size
    return to


cdef void copy_one(Batch* batch, const Ledger* ledger) noexcept nogil:
    cdef LedgerRecord* record = &batch.records[batch.count]
    record.ledger = ledger.chained.ledger
    record.fenced = ledger.fenced and not bk_planted(PLANT_FENCE_NOT_INDEXED)
    record.limbo = ledger.limbo
    record.quarantine = ledger.quarantine
    record.key = copied(batch, ledger.key, ledger.key_size)
    record.key_size = ledger.key_size
    record.lac = copied(batch, ledger.explicit_lac, ledger.explicit_lac_size)
    record.lac_size = ledger.explicit_lac_size
    batch.count += 1


cdef Ledger* begin(Shard* shard) noexcept nogil:
    """Separate the ledgers that have changed until now from those that change from now on."""
    cdef LedgerMap* ledgers = &shard.ledgers
    pthread_mutex_lock(&shard.lock)
    ledgers.put = ledgers.changed
    ledgers.changed = NULL
    pthread_mutex_unlock(&shard.lock)
    return ledgers.put


cdef Ledger* copy_some(Shard* shard, Ledger* ledger, Batch* batch) noexcept nogil:
    """Copy the records of a few ledgers from this one on; return the ledger after them."""
    batch.count = 0
    batch.used = 0
    pthread_mutex_lock(&shard.lock)
    while ledger != NULL and batch.count < LEDGERS_A_LOOK and batch.used < BYTES_A_LOOK:
        copy_one(batch, ledger)
        ledger.change = PUT
        ledger = ledger.next_changed
    pthread_mutex_unlock(&shard.lock)
    return ledger


cdef Status put_shard(Store* store, Shard* shard, Batch* batch) noexcept nogil:
    cdef Ledger* ledger = begin(shard)
    cdef Status status = OK
    cdef uint32_t i
    while ledger != NULL:
        ledger = copy_some(shard, ledger, batch)
        for i in range(batch.count):
            status = index_put_ledger(store.index, &batch.records[i])
            if status != OK:
                return status
            step(STEP_LEDGER_PUT)
    return OK


cdef Status ledgers_put(Store* store) noexcept nogil:
    cdef Batch* batch = <Batch*> malloc(sizeof(Batch))
    cdef Status status = OK
    cdef uint32_t i
    if batch == NULL:
        return NO_MEMORY
    for i in range(SHARDS):
        if status == OK:
            status = put_shard(store, &store.shards[i], batch)
    free(batch)
    return status


cdef bint settle_some(Shard* shard, bint committed) noexcept nogil:
    """Settle a few ledgers; return whether there may be more."""
    cdef LedgerMap* ledgers = &shard.ledgers
    cdef Ledger* ledger
    cdef uint32_t count = 0
    cdef bint more
    pthread_mutex_lock(&shard.lock)
    while ledgers.put != NULL and count < LEDGERS_A_LOOK:
        ledger = ledgers.put
        ledgers.put = ledger.next_changed
        count += 1
        if (committed or bk_planted(PLANT_FAILED_COMMIT_SETTLED)) and (
                ledger.change == PUT or bk_planted(PLANT_CHANGE_LOST)):
            ledger.change = UNCHANGED
        else:
            ledger.change = CHANGED
            ledger.next_changed = ledgers.changed
            ledgers.changed = ledger
    more = ledgers.put != NULL
    pthread_mutex_unlock(&shard.lock)
    return more


cdef void ledgers_settle(Store* store, bint committed) noexcept nogil:
    cdef uint32_t i
    for i in range(SHARDS):
        while settle_some(&store.shards[i], committed):
            pass
