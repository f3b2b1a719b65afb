"""Filling pages. Guarded by the ledger's shard; no locks, no I/O here."""
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

from bookie._fast.base.cursor cimport store_u32
from bookie._fast.base.types cimport LENGTH_PREFIX


cdef inline uint32_t* slot_at(Page* page, uint32_t slot) noexcept nogil:
    return (<uint32_t*> (page.data + page.capacity)) - 1 - slot


cdef bint page_add_slot(Page* page, uint32_t offset) noexcept nogil:
    """Add a slot for a record that lies at `offset`; return False if slots would overlap records."""
    if <uint64_t> page.used + 4 * (<uint64_t> page.slots + 1) > page.capacity:
        return False
    slot_at(page, page.slots)[0] = offset
    page.slots += 1
    return True


cdef void page_init(Page* page, Region* region, uint8_t* data, uint32_t capacity, int64_t ledger) noexcept nogil:
    page.region = region
    page.data = data
    page.used = 0
    page.capacity = capacity
    page.slots = 0
    page.ledger = ledger
    page.next = NULL
    page.live = True
    page.shown = False
    page.log_id = 0
    page.log_end = 0
    page.follow = -1
    page.taken = 0
    page.taken_from = <uint32_t> -1
    page.taken_to = 0
    page.setting = 0


cdef void page_take(Page* page, uint32_t slot, uint32_t n) noexcept nogil:
    page.taken += n
    if slot < page.taken_from:
        page.taken_from = slot
    if slot + n > page.taken_to:
        page.taken_to = slot + n


cdef bint page_append(Page* page, const uint8_t* entry, uint32_t size) noexcept nogil:
    """Append a length word and a copy of the entry; return False if the page has no room."""
    cdef uint64_t need = <uint64_t> LENGTH_PREFIX + size + 4 * (<uint64_t> page.slots + 1)
    cdef uint8_t* out
    if need > page.capacity - page.used:
        return False
    out = page.data + page.used
    store_u32(out, size)
    memcpy(out + LENGTH_PREFIX, entry, size)
    slot_at(page, page.slots)[0] = page.used
    page.slots += 1
    page.used += LENGTH_PREFIX + size
    return True
