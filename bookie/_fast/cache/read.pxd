"""The read cache: a ring of equal segments on numpy memory, which hold the pages that readahead has read.

The pages of a segment are dropped together when the ring reaches it again. The index of a page (a Run in its ledger's
RunMap) is guarded by the ledger's shard; the ring's position by its lock. The read pool fills it; I/O loops and the
read pool read from it.
"""
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from bookie._fast.base.sync cimport pthread_mutex_t
from bookie._fast.base.types cimport Status
from bookie._fast.cache.pages cimport Page, Region

cdef struct Segment:
    Region region
    uint64_t used
    uint64_t map_bytes       # the most that the runs of its pages take: that much at its end stays unused instead
    Page* pages              # list through Page.next, newest first

ctypedef void (*drop_page_fn)(void* context, Page* page) noexcept nogil
ctypedef void (*want_back_fn)(void* context, Region* region) noexcept nogil

cdef struct ReadRing:
    pthread_mutex_t lock     # guards current, every `used` and `pages`
    Segment* segments
    uint32_t count
    uint32_t current
    uint64_t segment_bytes
    drop_page_fn drop        # clears page.live and removes it from its ledger's runs, under its shard
    want_back_fn want_back   # asks for a region's pins to be released, without waiting
    void* context
    int64_t evicted          # number of segments emptied

cdef bint ring_init(ReadRing* ring, uint32_t count, uint64_t segment_bytes, drop_page_fn drop, want_back_fn want_back,
                    void* context) noexcept nogil
cdef void ring_set_segment(ReadRing* ring, uint32_t at, uint8_t* base) noexcept nogil
cdef void ring_free(ReadRing* ring) noexcept nogil
# Allocate a page with `capacity` bytes for records and slots. Its region is pinned once for the caller. Return NULL if
# the page is larger than a segment, or while the next segment is pinned; never waits.
cdef Page* ring_page(ReadRing* ring, int64_t ledger, uint32_t capacity) noexcept nogil
# Give back the part of a segment's newest page that is not needed (its slots are moved).
cdef void ring_trim(ReadRing* ring, Page* page, uint32_t capacity) noexcept nogil
