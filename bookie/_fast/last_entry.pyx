"""Learning a ledger's last entry. The index is asked without the shard's lock: meanwhile adds only raise it."""
from bookie._fast.ledger_table cimport Ledger, ledger_find
from bookie._fast.location_index cimport index_last
from bookie._fast.sync cimport pthread_mutex_lock, pthread_mutex_unlock
from bookie._fast.types cimport IO_ERROR, NO_ENTRY, OK


cdef Status learn_last(Shard* shard, IndexReader* reader, int64_t ledger_id) noexcept nogil:
    cdef Ledger* ledger
    cdef int64_t last = -1
    cdef bint known
    cdef Status status
    pthread_mutex_lock(&shard.lock)
    ledger = ledger_find(&shard.ledgers, ledger_id)
    known = ledger == NULL or ledger.last_known
    pthread_mutex_unlock(&shard.lock)
    if known:
        return OK
    status = index_last(reader, ledger_id, &last)
    if status != OK and status != NO_ENTRY:
        return IO_ERROR
    pthread_mutex_lock(&shard.lock)
    ledger = ledger_find(&shard.ledgers, ledger_id)
    if ledger != NULL:
        if status == OK and last > ledger.last:
            ledger.last = last
        ledger.last_known = True
    pthread_mutex_unlock(&shard.lock)
    return OK
