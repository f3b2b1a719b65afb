"""Entry log, offset and length of a ledger's entries, from the index."""
from collections import namedtuple

from libc.stdint cimport int64_t, uint32_t
from libc.stdlib cimport free, malloc

from bookie._fast.base.types cimport IO_ERROR, NO_ENTRY, OK
from bookie._fast.index.location cimport IndexReader, index_next, index_reader, index_reader_free
from bookie._fast.store.storage cimport StorageEngine
from bookie._fast.store.stores cimport store_of

Place = namedtuple("Place", ("entry", "log_id", "offset", "length"))

cdef enum:
    MOST = 100_000


cdef Status places_find(Storage* stores, int64_t ledger, int64_t first, uint32_t most, IndexHit* hits,
                        uint32_t* found) noexcept nogil:
    cdef IndexReader* reader = index_reader(store_of(stores, ledger).index)
    cdef Status status = OK
    found[0] = 0
    if reader == NULL:
        return IO_ERROR
    while found[0] < most:
        status = index_next(reader, ledger, first, &hits[found[0]])
        if status != OK:
            break
        first = hits[found[0]].entry + 1
        found[0] += 1
    index_reader_free(reader)
    return OK if status == NO_ENTRY else status


def entry_places(StorageEngine stores, int64_t ledger, int64_t first=0, uint32_t most=1000) -> list[Place]:
    """Return up to `most` places (100,000 at a time) from entry `first` on, ascending; `offset` is that of the length
    word.

    OSError if the index cannot be read, MemoryError.
    """
    cdef IndexHit* hits
    cdef uint32_t found = 0
    cdef Status status
    if not 0 < most <= MOST:
        raise ValueError(f"most is {most}; it must be 1 to {MOST}")
    hits = <IndexHit*> malloc(most * sizeof(IndexHit))
    if hits == NULL:
        raise MemoryError
    try:
        with nogil:
            status = places_find(stores.stores, ledger, max(first, 0), most, hits, &found)
        if status != OK:
            raise OSError(f"the location index of ledger {ledger} cannot be read")
        return [Place(hits[i].entry, hits[i].log_id, hits[i].offset, hits[i].length) for i in range(found)]
    finally:
        free(hits)
