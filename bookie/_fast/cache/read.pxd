"""The read cache: a ring of equal segments on numpy memory, and in it the pages that readahead brought.

The pages of a segment vanish together when the ring comes round to it. The index of a page (a Run in its ledger's
RunMap) is guarded by the ledger's shard; the ring's own position by its lock. Filled by the read pool, read by I/O
loops and read pool.
"""
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from bookie._fast.base.sync cimport pthread_mutex_t
from bookie._fast.base.types cimport Status
from bookie._fast.cache.pages cimport Page, Region

cdef struct Segment:
    Region region
    uint64_t used
    uint64_t map_bytes       # most that the runs of its pages take: its end stays untouched for them
    Page* pages              # list through Page.next, newest first

ctypedef void (*drop_page_fn)(void* context, Page* page) noexcept nogil
ctypedef void (*want_back_fn)(void* context, Region* region) noexcept nogil

cdef struct ReadRing:
    pthread_mutex_t lock     # guards current, every `used` and `pages`
    Segment* segments
    uint32_t count
    uint32_t current
    uint64_t segment_bytes
    drop_page_fn drop        # clears page.live and takes it out of its ledger's runs, under its shard
    want_back_fn want_back   # has everybody let go of a region, and does not wait
    void* context
    int64_t evicted          # segments emptied

cdef bint ring_init(ReadRing* ring, uint32_t count, uint64_t segment_bytes, drop_page_fn drop, want_back_fn want_back,
                    void* context) noexcept nogil
cdef void ring_set_segment(ReadRing* ring, uint32_t at, uint8_t* base) noexcept nogil
cdef void ring_free(ReadRing* ring) noexcept nogil
# A page with `capacity` bytes for records and slots. Its region is pinned once for the caller.
# NULL when it fits no segment, or while the next segment is pinned by others; never waits.
cdef Page* ring_page(ReadRing* ring, int64_t ledger, uint32_t capacity) noexcept nogil
# Give back what the newest page of a segment did not need (its slots move up).
cdef void ring_trim(ReadRing* ring, Page* page, uint32_t capacity) noexcept nogil
