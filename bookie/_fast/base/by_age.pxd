"""A hash table of items by ledger id that also keeps them in order of last use, as an LRU list does.

The struct of an item begins with an Aged and belongs to its owner. A zeroed ByAge owns no memory. One thread at a
time.
"""
from libc.stdint cimport int64_t

from bookie._fast.base.by_ledger cimport ByLedger, Chained, LetGo, chained_find

cdef struct Aged:
    Chained chained
    Aged* older
    Aged* newer

cdef struct ByAge:
    ByLedger table
    Aged* oldest
    Aged* newest

# Return the item of `ledger`, or NULL.
cdef inline Aged* aged_find(const ByAge* things, int64_t ledger) noexcept nogil:
    return <Aged*> chained_find(&things.table, ledger)

# Make an empty table. Return False if there is no memory.
cdef bint by_age_init(ByAge* things) noexcept nogil
# Free the table, passing each item to `let_go`, which frees it.
cdef void by_age_free(ByAge* things, LetGo let_go) noexcept nogil
# Add an item as the newest. Its `chained.ledger` is set, and no item of that ledger is in the table.
cdef void aged_put(ByAge* things, Aged* thing) noexcept nogil
# Make an item of the table the newest.
cdef void aged_renew(ByAge* things, Aged* thing) noexcept nogil
# Remove an item from the table without freeing it.
cdef void aged_drop(ByAge* things, Aged* thing) noexcept nogil
