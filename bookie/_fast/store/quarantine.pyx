"""Quarantine for threads that hold no lock, and the part that Python uses."""
from collections import namedtuple

from libc.stdint cimport int64_t, uint32_t
from libc.stdlib cimport free, malloc

from bookie._fast.base.sync cimport pthread_mutex_lock, pthread_mutex_unlock
from bookie._fast.store.ledger_table cimport (
    Ledger,
    LedgerMap,
    Quarantined,
    ledger_end_quarantine,
    ledger_find,
    ledger_quarantine,
)
from bookie._fast.store.storage cimport DirectoryStore, StorageEngine, stores_request_flush
from bookie._fast.store.stores cimport SHARDS, Shard, Store, shard_of, store_of

cdef enum:
    ROOM_FOR_MORE = 1024         # ledgers that may be added while they are listed

# By QuarantineReason. Operators read these after "the ledger has".
REASONS = (
    "",
    "an entry id that the index cannot hold",
    "a record longer than an entry log takes",
    "master keys in the journal that contradict each other",
    "an invalid explicit LAC",
    "an unreadable record in the ledgers index",
    "unreadable runs in the location index",
    "a bad record in an entry log",
)

Quarantine = namedtuple("Quarantine", "ledger reasons")


cdef bint stores_quarantine(Storage* stores, int64_t ledger_id, QuarantineReason reason) noexcept nogil:
    cdef Shard* shard = shard_of(store_of(stores, ledger_id), ledger_id)
    cdef Ledger* ledger
    cdef bint fresh
    pthread_mutex_lock(&shard.lock)
    ledger = ledger_find(&shard.ledgers, ledger_id)
    fresh = ledger != NULL and ledger_quarantine(&shard.ledgers, ledger, reason)
    pthread_mutex_unlock(&shard.lock)
    if fresh:
        stores_request_flush(stores)
    return fresh


def put(StorageEngine stores, int64_t ledger, reason: str) -> bool:
    """Put a ledger into quarantine for one of REASONS; return whether that is new. False if the ledger is unknown
    here.

    ValueError for another reason.
    """
    cdef int number = REASONS.index(reason, 1)
    cdef bint fresh
    with nogil:
        fresh = stores_quarantine(stores.stores, ledger, <QuarantineReason> number)
    return fresh


def lift(StorageEngine stores, int64_t ledger_id) -> bool:
    """Release a ledger, durably with the next checkpoint; return False if it was not in quarantine."""
    cdef Shard* shard = shard_of(store_of(stores.stores, ledger_id), ledger_id)
    cdef Ledger* ledger
    cdef bint found
    with nogil:
        pthread_mutex_lock(&shard.lock)
        ledger = ledger_find(&shard.ledgers, ledger_id)
        found = ledger != NULL and ledger.quarantine
        if found:
            ledger_end_quarantine(&shard.ledgers, ledger)
        pthread_mutex_unlock(&shard.lock)
        if found:
            stores_request_flush(stores.stores)
    return found


cdef struct Note:
    int64_t ledger
    uint32_t reasons


cdef int64_t collect(Store* store, bint fresh, Note* out, int64_t most) noexcept nogil:
    """Collect up to `most` ledgers with their reasons, with `fresh` only unreported ones; return their number."""
    cdef LedgerMap* map
    cdef Quarantined* entry
    cdef uint32_t bits, b
    cdef int64_t found = 0
    cdef int i
    for i in range(SHARDS):
        map = &store.shards[i].ledgers
        pthread_mutex_lock(&store.shards[i].lock)
        for b in range(map.quarantined.size if map.quarantined.count else 0):
            entry = <Quarantined*> map.quarantined.buckets[b]
            while entry != NULL and found < most:
                bits = entry.reasons & ~entry.logged if fresh else entry.reasons
                if bits:
                    out[found].ledger = entry.chained.ledger
                    out[found].reasons = bits
                    found += 1
                if fresh:
                    entry.logged |= bits
                entry = <Quarantined*> entry.chained.next
        pthread_mutex_unlock(&store.shards[i].lock)
    return found


cdef list _collected(DirectoryStore handle, bint fresh, int64_t most):
    cdef Note* notes = <Note*> malloc((most + 1) * sizeof(Note))
    cdef int64_t found
    if notes == NULL:
        raise MemoryError
    with nogil:
        found = collect(handle.store, fresh, notes, most)
    try:
        return [
            Quarantine(notes[i].ledger, tuple(name for n, name in enumerate(REASONS) if notes[i].reasons >> n & 1))
            for i in range(found)
        ]
    finally:
        free(notes)


def listed(DirectoryStore handle) -> list[Quarantine]:
    """Return all ledgers of the directory that are in quarantine, ascending."""
    cdef int i
    most = sum(handle.store.shards[i].ledgers.quarantined.count for i in range(SHARDS)) + ROOM_FOR_MORE
    return sorted(_collected(handle, False, most))


def news(DirectoryStore handle, int64_t most) -> list[Quarantine]:
    """Return up to `most` ledgers with reasons that no earlier call returned."""
    return _collected(handle, True, most)
