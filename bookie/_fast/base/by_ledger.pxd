"""A growing hash of things by their ledger's id, which are chained through themselves.

A thing's struct begins with a Chained and belongs to its owner; the buckets belong to the ByLedger, and one of zeros
needs nothing freed. One thread at a time: the owner's lock, or its loop.
"""
from libc.stdint cimport int64_t, uint32_t, uint64_t

cdef struct Chained:
    int64_t ledger
    Chained* next

cdef struct ByLedger:
    Chained** buckets
    uint32_t size            # power of two; 0 without buckets
    uint32_t count

ctypedef void (*LetGo)(Chained* thing) noexcept nogil

cdef inline uint64_t ledger_hash(int64_t ledger) noexcept nogil:
    cdef uint64_t h = <uint64_t> ledger * <uint64_t> 0x9E3779B97F4A7C15
    return h ^ (h >> 29)

# NULL: not there. Needs buckets, which everything that was once made or filled has.
cdef inline Chained* chained_find(const ByLedger* table, int64_t ledger) noexcept nogil:
    cdef Chained* at = table.buckets[ledger_hash(ledger) & (table.size - 1)]
    while at != NULL and at.ledger != ledger:
        at = at.next
    return at

# Empty, with buckets; False without memory.
cdef bint chained_init(ByLedger* table) noexcept nogil
# The same, with as many buckets as another one has.
cdef bint chained_init_like(ByLedger* table, const ByLedger* other) noexcept nogil
# Take in what is not there yet; its `ledger` is set. Without memory for more buckets the chains get longer.
cdef void chained_put(ByLedger* table, Chained* thing) noexcept nogil
# Let go of what is there.
cdef void chained_drop(ByLedger* table, Chained* thing) noexcept nogil
# Empty, with its buckets: `let_go` frees each thing.
cdef void chained_clear(ByLedger* table, LetGo let_go) noexcept nogil
# Back to zeros; nothing may be in it.
cdef void chained_free(ByLedger* table) noexcept nogil
