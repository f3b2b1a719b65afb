"""A growing, chained hash table of items by ledger id; the chain pointers are part of the items.

The struct of an item begins with a Chained and belongs to its owner. The ByLedger owns the buckets; a zeroed one owns
no memory. One thread at a time: the holder of the owner's lock, or the owner's I/O loop.
"""
from libc.stdint cimport int64_t, uint32_t, uint64_t

cdef struct Chained:
    int64_t ledger
    Chained* next

cdef struct ByLedger:
    Chained** buckets
    uint32_t size            # number of buckets, a power of two; 0 before chained_init
    uint32_t count

ctypedef void (*LetGo)(Chained* thing) noexcept nogil

cdef inline uint64_t ledger_hash(int64_t ledger) noexcept nogil:
    cdef uint64_t h = <uint64_t> ledger * <uint64_t> 0x9E3779B97F4A7C15
    return h ^ (h >> 29)

cdef enum:
    LEDGER_SHARDS = 64

cdef inline uint32_t ledger_shard(int64_t ledger) noexcept nogil:
    """Return in which of LEDGER_SHARDS equal parts a ledger is, wherever ledgers are divided."""
    return <uint32_t> ((<uint64_t> ledger * <uint64_t> 0x9E3779B97F4A7C15) >> 58)

# The order of ids for qsort and bsearch: signed, ascending.
cdef int ascending_ids(const void* a, const void* b) noexcept nogil

# Return the item of `ledger`, or NULL. The table must have been initialised.
cdef inline Chained* chained_find(const ByLedger* table, int64_t ledger) noexcept nogil:
    cdef Chained* at = table.buckets[ledger_hash(ledger) & (table.size - 1)]
    while at != NULL and at.ledger != ledger:
        at = at.next
    return at

# Make an empty table with its first buckets. Return False if there is no memory.
cdef bint chained_init(ByLedger* table) noexcept nogil
# The same with as many buckets as `other` has.
cdef bint chained_init_like(ByLedger* table, const ByLedger* other) noexcept nogil
# Add an item whose `ledger` is set and not in the table yet. Without memory for more buckets the chains grow longer.
cdef void chained_put(ByLedger* table, Chained* thing) noexcept nogil
# Remove an item from the table without freeing it.
cdef void chained_drop(ByLedger* table, Chained* thing) noexcept nogil
# Remove all items, passing each to `let_go`, which frees it. The buckets stay.
cdef void chained_clear(ByLedger* table, LetGo let_go) noexcept nogil
# Remove all items, which the caller frees. The buckets stay.
cdef void chained_forget(ByLedger* table) noexcept nogil
# Free the buckets of a table without items, and zero it.
cdef void chained_free(ByLedger* table) noexcept nogil
