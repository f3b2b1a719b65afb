"""The write cache: two halves, one taking adds while the other is flushed. An add costs one memcpy.

Each ledger writes into pages of its own that grow from 4 KiB to 1 MiB, so that entries of a ledger stay contiguous.
Puts are guarded by the ledger's shard; the half's memory is handed out by an atomic counter.
"""
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from bookie._fast.base.sync cimport bk_load
from bookie._fast.base.types cimport Status
from bookie._fast.cache.pages cimport Region
from bookie._fast.cache.runs cimport RunMap

cdef struct Half:
    Region region
    int64_t used             # atomic; bytes handed out to pages
    int64_t entries          # atomic
    int64_t bytes            # atomic; of records
    int64_t map_bytes        # atomic; most that its run maps take: taken from the half, whose end stays untouched

cdef inline int64_t half_taken(const Half* half) noexcept nogil:
    """Bytes of memory: pages, and the runs that lead to them."""
    return bk_load(&half.used) + bk_load(&half.map_bytes)

cdef bint half_init(Half* half, uint64_t size) noexcept nogil
cdef void half_free(Half* half) noexcept nogil
# A half that holds nothing, and that nobody points into, becomes this large. False without memory: it stays as it was.
cdef bint half_resize(Half* half, uint64_t size) noexcept nogil
# Forget everything; the caller has seen region.pins at 0 and cleared the run maps.
cdef void half_reset(Half* half) noexcept nogil
# What `LedgerRuns.page_bytes` has to be for a page that these bytes of records and slots fill, or the largest one.
cdef uint32_t page_for(uint64_t size) noexcept nogil
# OK, FULL, NO_MEMORY, BAD_REQUEST (ids beyond `bounds`), or TOO_MANY_REQUESTS when a ledger's entries arrive too
# scattered to keep (a flush helps).
# `is_tail`: the entry is above all that the ledger holds.
cdef Status half_put(Half* half, RunMap* map, int64_t ledger, int64_t entry, const uint8_t* data, uint32_t size,
                     bint is_tail) noexcept nogil

cdef class WriteHalf:
    cdef Half half
    cdef RunMap map
