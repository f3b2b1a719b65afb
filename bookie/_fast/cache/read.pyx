"""The ring of the read cache: segments are filled in turn and emptied as a whole."""
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memmove

from bookie._fast.base.planted cimport PLANT_SEGMENT_REUSED, PLANT_STALE_PAGES, bk_planted
from bookie._fast.base.sync cimport (
    bk_add,
    bk_load,
    bk_store,
    pthread_mutex_destroy,
    pthread_mutex_init,
    pthread_mutex_lock,
    pthread_mutex_unlock,
)
from bookie._fast.cache.pages cimport Page, page_init

cdef enum:
    ALIGN = 64
    PAGE_RUNS = 384          # reserved for the runs that point into a page; bookie/spark/reread/cache.py has it, too


cdef bint ring_init(ReadRing* ring, uint32_t count, uint64_t segment_bytes, drop_page_fn drop, want_back_fn want_back,
                    void* context) noexcept nogil:
    ring.segments = <Segment*> calloc(count, sizeof(Segment))
    ring.count = count
    ring.current = 0
    ring.segment_bytes = segment_bytes
    ring.drop = drop
    ring.want_back = want_back
    ring.context = context
    ring.evicted = 0
    pthread_mutex_init(&ring.lock, NULL)
    return ring.segments != NULL


cdef void ring_set_segment(ReadRing* ring, uint32_t at, uint8_t* base) noexcept nogil:
    ring.segments[at].region.base = base
    ring.segments[at].region.size = ring.segment_bytes


cdef void ring_free(ReadRing* ring) noexcept nogil:
    if ring.segments != NULL:
        pthread_mutex_destroy(&ring.lock)
        free(ring.segments)
        ring.segments = NULL


cdef bint empty_segment(ReadRing* ring, Segment* segment) noexcept nogil:
    """Remove the segment's pages from the maps. Return False while it is pinned, and ask for its pins then: waiting
    here would block readers that need the lock to finish.
    """
    cdef Page* page
    while segment.pages != NULL:
        page = segment.pages
        segment.pages = page.next
        if not bk_planted(PLANT_STALE_PAGES):
            ring.drop(ring.context, page)
    if bk_load(&segment.region.pins) != 0 and not bk_planted(PLANT_SEGMENT_REUSED):
        ring.want_back(ring.context, &segment.region)
        return False
    bk_store(&segment.region.wanted, 0)
    if segment.used:
        bk_add(&ring.evicted, 1)
    segment.used = 0
    segment.map_bytes = 0
    return True


cdef Page* ring_page(ReadRing* ring, int64_t ledger, uint32_t capacity) noexcept nogil:
    cdef uint64_t head = (sizeof(Page) + ALIGN - 1) & ~<uint64_t> (ALIGN - 1)
    cdef uint64_t size = head + ((capacity + ALIGN - 1) & ~<uint64_t> (ALIGN - 1))
    cdef Segment* segment
    cdef Page* page
    cdef uint32_t following
    if size + PAGE_RUNS > ring.segment_bytes:
        return NULL
    pthread_mutex_lock(&ring.lock)
    segment = &ring.segments[ring.current]
    if size + PAGE_RUNS > ring.segment_bytes - segment.used - segment.map_bytes:
        following = (ring.current + 1) % ring.count
        segment = &ring.segments[following]
        if not empty_segment(ring, segment):
            pthread_mutex_unlock(&ring.lock)
            return NULL
        ring.current = following
    page = <Page*> (segment.region.base + segment.used)
    segment.used += size
    segment.map_bytes += PAGE_RUNS
    page_init(page, &segment.region, <uint8_t*> page + head, <uint32_t> (size - head), ledger)
    page.next = segment.pages
    segment.pages = page
    bk_add(&segment.region.pins, 1)
    pthread_mutex_unlock(&ring.lock)
    return page


cdef void ring_trim(ReadRing* ring, Page* page, uint32_t capacity) noexcept nogil:
    cdef Segment* segment
    cdef uint8_t* end = page.data + page.capacity
    capacity = (capacity + ALIGN - 1) & ~<uint32_t> (ALIGN - 1)
    if capacity >= page.capacity:
        return
    pthread_mutex_lock(&ring.lock)
    segment = &ring.segments[ring.current]
    if segment.pages == page and segment.region.base + segment.used == end:
        memmove(page.data + capacity - 4 * <size_t> page.slots, end - 4 * <size_t> page.slots, 4 * <size_t> page.slots)
        page.capacity = capacity
        segment.used -= end - (page.data + capacity)
    pthread_mutex_unlock(&ring.lock)
