"""Learning a ledger's last entry. The index is read without the shard's lock: meanwhile adds can only raise it."""
from bookie._fast.base.op_stats cimport op_note_shared
from bookie._fast.base.planted cimport PLANT_LAST_AFTER_ERROR, bk_planted
from bookie._fast.base.sync cimport now_ns, pthread_mutex_lock, pthread_mutex_unlock
from bookie._fast.base.types cimport IO_ERROR, NO_ENTRY, OK
from bookie._fast.index.location cimport index_last
from bookie._fast.store.ledger_table cimport Ledger, ledger_find
from bookie._fast.store.stores cimport Shard, shard_of


cdef Status learn_last(Store* store, IndexReader* reader, int64_t ledger_id) noexcept nogil:
    cdef Shard* shard = shard_of(store, ledger_id)
    cdef Ledger* ledger
    cdef int64_t last = -1
    cdef bint known
    cdef int64_t started
    cdef Status status
    pthread_mutex_lock(&shard.lock)
    ledger = ledger_find(&shard.ledgers, ledger_id)
    known = ledger == NULL or ledger.last_known
    pthread_mutex_unlock(&shard.lock)
    if known:
        return OK
    started = now_ns()
    status = index_last(reader, ledger_id, &last)
    op_note_shared(&store.cache.last_lookups, now_ns() - started)
    if status != OK and status != NO_ENTRY and not bk_planted(PLANT_LAST_AFTER_ERROR):
        return IO_ERROR
    pthread_mutex_lock(&shard.lock)
    ledger = ledger_find(&shard.ledgers, ledger_id)
    if ledger != NULL and not ledger.last_known:     # else it may be another one with this id, created since
        if status == OK and last > ledger.last:
            ledger.last = last
        ledger.last_known = True
    pthread_mutex_unlock(&shard.lock)
    return OK
