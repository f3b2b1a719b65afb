"""A region, its page and the page's bytes in one allocation. Large ones are mapped, and are unmapped when freed."""
from libc.stddef cimport size_t
from libc.stdint cimport int64_t, uint8_t, uint32_t
from libc.stdlib cimport free, malloc

from bookie._fast.base.sync cimport bk_add
from bookie._fast.cache.pages cimport page_init

cdef extern from "<sys/mman.h>" nogil:
    void* mmap(void*, size_t, int, int, int, int64_t) noexcept
    int munmap(void*, size_t) noexcept
    int PROT_READ
    int PROT_WRITE
    int MAP_PRIVATE
    int MAP_ANONYMOUS
    void* MAP_FAILED

cdef enum:
    MAPPED_LEAST = 1 << 17       # smaller pieces are left to malloc, which keeps freed memory for each thread
    MAPPED_UNIT = 4096

cdef struct Owned:
    Region region            # the first member, so that a region can be cast to its Owned
    Uncached* budget
    int64_t size
    Page page


cdef Owned* piece(int64_t size) noexcept nogil:
    cdef void* mapped
    if size < MAPPED_LEAST:
        return <Owned*> malloc(<size_t> size)
    mapped = mmap(NULL, <size_t> size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
    return <Owned*> mapped if mapped != MAP_FAILED else NULL


cdef Page* uncached_page(Uncached* budget, int64_t ledger, uint32_t capacity) noexcept nogil:
    cdef size_t head = (sizeof(Owned) + 63) & ~<size_t> 63
    cdef int64_t size = (<int64_t> (head + capacity) + MAPPED_UNIT - 1) & ~<int64_t> (MAPPED_UNIT - 1)
    cdef int64_t after = bk_add(&budget.bytes, size)
    cdef Owned* owned = NULL
    if after <= budget.bytes_max or after == size:
        owned = piece(size)
    if owned == NULL:
        bk_add(&budget.bytes, -size)
        return NULL
    owned.region.pins = 1
    owned.region.wanted = 1
    owned.region.base = <uint8_t*> owned
    owned.region.size = PRIVATE
    owned.region.of_write_cache = False
    owned.budget = budget
    owned.size = size
    page_init(&owned.page, &owned.region, <uint8_t*> owned + head, capacity & ~<uint32_t> 3, ledger)
    owned.page.live = False
    return &owned.page


cdef void uncached_free(Region* region) noexcept nogil:
    cdef Owned* owned = <Owned*> region
    cdef int64_t size = owned.size
    bk_add(&owned.budget.bytes, -size)
    if size < MAPPED_LEAST:
        free(owned)
    else:
        munmap(owned, <size_t> size)
