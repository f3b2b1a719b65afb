"""A doubly linked list through the items of a hash table."""
from bookie._fast.base.by_ledger cimport chained_clear, chained_drop, chained_free, chained_init, chained_put


cdef bint by_age_init(ByAge* things) noexcept nogil:
    things.oldest = things.newest = NULL
    return chained_init(&things.table)


cdef void by_age_free(ByAge* things, LetGo let_go) noexcept nogil:
    chained_clear(&things.table, let_go)
    chained_free(&things.table)
    things.oldest = things.newest = NULL


cdef void link(ByAge* things, Aged* thing) noexcept nogil:
    thing.newer = NULL
    thing.older = things.newest
    if things.newest != NULL:
        things.newest.newer = thing
    else:
        things.oldest = thing
    things.newest = thing


cdef void unlink(ByAge* things, Aged* thing) noexcept nogil:
    if thing.newer != NULL:
        thing.newer.older = thing.older
    else:
        things.newest = thing.older
    if thing.older != NULL:
        thing.older.newer = thing.newer
    else:
        things.oldest = thing.newer


cdef void aged_put(ByAge* things, Aged* thing) noexcept nogil:
    chained_put(&things.table, &thing.chained)
    link(things, thing)


cdef void aged_renew(ByAge* things, Aged* thing) noexcept nogil:
    if things.newest != thing:
        unlink(things, thing)
        link(things, thing)


cdef void aged_drop(ByAge* things, Aged* thing) noexcept nogil:
    chained_drop(&things.table, &thing.chained)
    unlink(things, thing)
