"""The write cache: two halves, of which one takes adds while the other is flushed. An add costs one memcpy.

Each ledger writes into its own pages, which grow to 1 MiB, so that entries of a ledger stay contiguous. The first one
takes 512 bytes or one entry: of many ledgers, most have no more in a half. Puts are guarded by the ledger's shard; the
half's memory is handed out by an atomic counter.
"""
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from bookie._fast.base.sync cimport bk_load
from bookie._fast.base.types cimport Status
from bookie._fast.cache.pages cimport Region
from bookie._fast.cache.runs cimport RunMap

cdef struct Half:
    Region* region           # not owned; NULL: a flush has passed its memory on (module store.kept_halves)
    int64_t used             # atomic; bytes handed out to pages
    int64_t entries          # atomic
    int64_t bytes            # atomic; of records
    int64_t map_bytes        # atomic; the most that its run maps take: that much at the half's end stays unused instead

cdef inline int64_t half_taken(const Half* half) noexcept nogil:
    """Return the bytes of memory taken by pages and by the runs that lead to them."""
    return bk_load(&half.used) + bk_load(&half.map_bytes)

# Make an empty half on new memory, which `region` then describes. It must not have any. Return False if there is none.
cdef bint half_init(Half* half, Region* region, uint64_t size) noexcept nogil
# Change the size of a half that is empty and not pinned. Return False if there is no memory, with nothing changed.
cdef bint half_resize(Half* half, uint64_t size) noexcept nogil
# Forget everything. The caller has seen region.pins at 0 and has cleared the run maps.
cdef void half_reset(Half* half) noexcept nogil
# Return the `LedgerRuns.page_bytes` for a page that this many bytes of records and slots fill, or that of the largest.
cdef uint32_t page_for(uint64_t size) noexcept nogil
# Put an entry. Return OK, FULL, NO_MEMORY, BAD_REQUEST (ids beyond `bounds`), or TOO_MANY_REQUESTS if the ledger's
# entries arrive too much out of order, until the next flush. `is_tail`: the entry is above all others of the ledger.
cdef Status half_put(Half* half, RunMap* map, int64_t ledger, int64_t entry, const uint8_t* data, uint32_t size,
                     bint is_tail) noexcept nogil

cdef class WriteHalf:
    cdef Region region
    cdef Half half
    cdef RunMap map
