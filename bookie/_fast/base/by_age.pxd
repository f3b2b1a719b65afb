"""Things by their ledger's id, in the order of when each was last made the newest.

A thing's struct begins with an Aged and belongs to its owner; a ByAge of zeros needs nothing freed. One thread at a
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

# NULL: not there.
cdef inline Aged* aged_find(const ByAge* things, int64_t ledger) noexcept nogil:
    return <Aged*> chained_find(&things.table, ledger)

# Empty; False without memory.
cdef bint by_age_init(ByAge* things) noexcept nogil
# Back to zeros: `let_go` frees each thing.
cdef void by_age_free(ByAge* things, LetGo let_go) noexcept nogil
# Take in what is not there yet, as the newest; its `chained.ledger` is set.
cdef void aged_put(ByAge* things, Aged* thing) noexcept nogil
# What is there is the newest now.
cdef void aged_renew(ByAge* things, Aged* thing) noexcept nogil
# Let go of what is there.
cdef void aged_drop(ByAge* things, Aged* thing) noexcept nogil
