"""Pages of records.

A Page holds records `u32 length | entry` from its front and their u32 offsets (slots) from its back. Nothing here
locks: the shard of the page's ledger (module `store.storage`) guards it where nothing else is said.
"""
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from bookie._fast.base.cursor cimport load_i64
from bookie._fast.base.types cimport LENGTH_PREFIX

cdef struct Region:
    # Memory that slices may point into. It is reused only when `pins` is 0.
    int64_t pins             # atomic
    int64_t wanted           # atomic; 1: it is wanted back, from when that was asked until it is reused
    uint8_t* base
    uint64_t size

cdef struct Page:
    Region* region
    uint8_t* data
    uint32_t used            # bytes of records at the front
    uint32_t capacity        # records and slots together
    uint32_t slots
    int64_t ledger
    Page* next               # of the same region; owner's use
    bint live                # False once its memory is about to be reused (read cache; guarded by the shard)
    bint shown               # its run was inserted: ids of its slots ascend and can be read (read cache; as above)
    uint32_t log_id          # where it was read from, and where that ended
    uint64_t log_end
    int64_t follow           # the entry behind it, until it is read ahead; -1: none (guarded by the shard)
    # what reads took of it so far (guarded by the shard)
    uint32_t taken           # entries, each as often as it was taken
    uint32_t taken_from      # slots: all that was taken lies in [taken_from, taken_to)
    uint32_t taken_to        # 0: nothing was
    uint32_t setting         # of the readahead that brought it (module cache.readahead)

cdef inline uint32_t page_offset(const Page* page, uint32_t slot) noexcept nogil:
    """Where record `slot` starts; slot == slots answers the end of the last record."""
    if slot >= page.slots:
        return page.used
    return (<uint32_t*> (page.data + page.capacity))[-1 - <int64_t> slot]

cdef inline int64_t slot_entry(const Page* page, uint32_t slot) noexcept nogil:
    """The id in a record's entry."""
    return load_i64(page.data + page_offset(page, slot) + LENGTH_PREFIX + 8)

# An empty page that belongs to no list.
cdef void page_init(Page* page, Region* region, uint8_t* data, uint32_t capacity, int64_t ledger) noexcept nogil
# Note that reads took these slots.
cdef void page_take(Page* page, uint32_t slot, uint32_t n) noexcept nogil
cdef bint page_append(Page* page, const uint8_t* entry, uint32_t size) noexcept nogil
cdef bint page_add_slot(Page* page, uint32_t offset) noexcept nogil
