"""Pages for reads that the read cache cannot take at the moment, within a budget.

A miss reads into such a page while the next segment of the ring is still pinned. The page is `wanted` from the start:
no response keeps it longer than until it is written, or copied at the end of a round of its loop. Any thread.
"""
from libc.stdint cimport int64_t, uint32_t

from bookie._fast.cache.pages cimport Page, Region

cdef enum:
    PRIVATE = 0              # the Region.size of such a page

cdef struct Uncached:
    int64_t bytes            # atomic; of all these pages
    int64_t bytes_max
    int64_t refused          # atomic; misses that found no space in time

# Allocate a page with `capacity` bytes for records and slots, outside of all runs; its region is pinned once, and
# freed with its last pin. NULL: there is no memory, or the page exceeds the budget, which a single page may.
cdef Page* uncached_page(Uncached* budget, int64_t ledger, uint32_t capacity) noexcept nogil
# Free a region that is not pinned any more.
cdef void uncached_free(Region* region) noexcept nogil
