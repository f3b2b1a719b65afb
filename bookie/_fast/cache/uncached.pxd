"""Pages for reads that the read cache cannot take now, within a budget.

While the segment that is next in the ring is still pointed into, a miss reads into such a page. It is `wanted` from
the start: nobody keeps it longer than an answer takes to be written, or copied, at the end of a round of its loop. Any
thread.
"""
from libc.stdint cimport int64_t, uint32_t

from bookie._fast.cache.pages cimport Page, Region

cdef enum:
    PRIVATE = 0              # Region.size of such a page

cdef struct Uncached:
    int64_t bytes            # atomic; of all pages
    int64_t bytes_max
    int64_t refused          # atomic; misses that found no room in time

# A page with `capacity` bytes for records and slots, in no ledger's runs; its region is pinned once and frees itself.
# NULL: over the budget, which a page that is alone may exceed, or no memory.
cdef Page* uncached_page(Uncached* budget, int64_t ledger, uint32_t capacity) noexcept nogil
# Nobody points into it any more.
cdef void uncached_free(Region* region) noexcept nogil
