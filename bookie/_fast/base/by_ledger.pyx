"""Chains in buckets. Their number doubles when there are as many items, so that most look-ups read one item. No locks,
no I/O.
"""
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memset

cdef enum:
    BUCKETS_FIRST = 16


cdef int ascending_ids(const void* a, const void* b) noexcept nogil:
    cdef int64_t left = (<const int64_t*> a)[0]
    cdef int64_t right = (<const int64_t*> b)[0]
    return (left > right) - (left < right)


cdef bint chained_init(ByLedger* table) noexcept nogil:
    table.count = 0
    table.size = BUCKETS_FIRST
    table.buckets = <Chained**> calloc(BUCKETS_FIRST, sizeof(Chained*))
    return table.buckets != NULL


cdef bint chained_init_like(ByLedger* table, const ByLedger* other) noexcept nogil:
    table.count = 0
    table.size = other.size
    table.buckets = <Chained**> calloc(other.size, sizeof(Chained*))
    return table.buckets != NULL


cdef inline void put(Chained** buckets, uint32_t size, Chained* thing) noexcept nogil:
    cdef uint64_t to = ledger_hash(thing.ledger) & (size - 1)
    thing.next = buckets[to]
    buckets[to] = thing


cdef void grow(ByLedger* table) noexcept nogil:
    cdef uint32_t size = table.size * 2
    cdef uint32_t i
    cdef Chained* at
    cdef Chained* following
    cdef Chained** buckets = <Chained**> calloc(size, sizeof(Chained*))
    if buckets == NULL:
        return
    for i in range(table.size):
        at = table.buckets[i]
        while at != NULL:
            following = at.next
            put(buckets, size, at)
            at = following
    free(table.buckets)
    table.buckets = buckets
    table.size = size


cdef void chained_put(ByLedger* table, Chained* thing) noexcept nogil:
    if table.count >= table.size:
        grow(table)
    put(table.buckets, table.size, thing)
    table.count += 1


cdef void chained_drop(ByLedger* table, Chained* thing) noexcept nogil:
    cdef Chained** link = &table.buckets[ledger_hash(thing.ledger) & (table.size - 1)]
    while link[0] != thing:
        link = &link[0].next
    link[0] = thing.next
    table.count -= 1


cdef void chained_clear(ByLedger* table, LetGo let_go) noexcept nogil:
    cdef Chained* at
    cdef Chained* following
    cdef uint32_t i
    if table.count == 0:
        return
    for i in range(table.size):
        at = table.buckets[i]
        while at != NULL:
            following = at.next
            let_go(at)
            at = following
    chained_forget(table)


cdef void chained_forget(ByLedger* table) noexcept nogil:
    memset(table.buckets, 0, table.size * sizeof(Chained*))
    table.count = 0


cdef void chained_free(ByLedger* table) noexcept nogil:
    free(table.buckets)
    memset(table, 0, sizeof(ByLedger))


cdef struct Thing:
    Chained chained
    int64_t value


cdef void free_thing(Chained* thing) noexcept nogil:
    free(thing)


cdef class Table:
    """A table of numbers by ledger id, for tests."""
    cdef ByLedger table

    def __cinit__(self):
        if not chained_init(&self.table):
            raise MemoryError("no memory for a table of ledgers")

    def __dealloc__(self):
        chained_clear(&self.table, free_thing)
        chained_free(&self.table)

    def put(self, int64_t ledger, int64_t value):
        """Set the number of a ledger."""
        cdef Thing* thing = <Thing*> chained_find(&self.table, ledger)
        if thing == NULL:
            thing = <Thing*> malloc(sizeof(Thing))
            if thing == NULL:
                raise MemoryError("no memory for an item")
            thing.chained.ledger = ledger
            chained_put(&self.table, &thing.chained)
        thing.value = value

    def find(self, int64_t ledger):
        """Return the number of a ledger, or None."""
        cdef Thing* thing = <Thing*> chained_find(&self.table, ledger)
        return None if thing == NULL else thing.value

    def drop(self, int64_t ledger):
        """Remove a ledger and return whether it was in the table."""
        cdef Chained* thing = chained_find(&self.table, ledger)
        if thing == NULL:
            return False
        chained_drop(&self.table, thing)
        free(thing)
        return True

    def clear(self):
        """Remove all ledgers."""
        chained_clear(&self.table, free_thing)

    def __len__(self):
        return self.table.count
