"""Pages of records.

A Page holds records `u32 length | entry` from its front on, and their u32 offsets (slots) from its back. Nothing here
takes locks: unless stated otherwise, the shard of the page's ledger (module `store.stores`) guards it.
"""
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from bookie._fast.base.cursor cimport load_i64
from bookie._fast.base.types cimport LENGTH_PREFIX

cdef struct Region:
    # Memory that slices may point into. It is reused only when `pins` is 0.
    int64_t pins             # atomic
    int64_t wanted           # atomic; 1 from the time its owner asks for it until it is reused: release pins soon
    uint8_t* base
    uint64_t size
    bint of_write_cache
    uint64_t touched         # of the write cache: bytes at its front that pages took before it was last emptied

cdef struct Page:
    Region* region
    uint8_t* data
    uint32_t used            # bytes of records at the front
    uint32_t capacity        # records and slots together
    uint32_t slots
    int64_t ledger
    Page* next               # in a list of its region; for the region's owner
    bint live                # False once its memory is about to be reused (read cache; guarded by the shard)
    bint shown               # its run was inserted: the ids of its slots ascend and may be read (read cache; the same)
    uint32_t log_id          # the entry log that it was read from, and where the read ended
    uint64_t log_end
    int64_t follow           # the entry after it, until that is read ahead; -1 if there is none (guarded by the shard)
    # What reads have taken of it so far (guarded by the shard).
    uint32_t taken           # entries, each counted as often as it was taken
    uint32_t taken_from      # slots: everything taken lies in [taken_from, taken_to)
    uint32_t taken_to        # 0 if nothing was taken
    uint32_t setting         # of the readahead that read it (module cache.readahead)

cdef inline uint32_t page_offset(const Page* page, uint32_t slot) noexcept nogil:
    """Return where record `slot` starts; slot == slots returns the end of the last record."""
    if slot >= page.slots:
        return page.used
    return (<uint32_t*> (page.data + page.capacity))[-1 - <int64_t> slot]

cdef inline int64_t slot_entry(const Page* page, uint32_t slot) noexcept nogil:
    """Return the entry id in a record."""
    return load_i64(page.data + page_offset(page, slot) + LENGTH_PREFIX + 8)

# Make an empty page that belongs to no list.
cdef void page_init(Page* page, Region* region, uint8_t* data, uint32_t capacity, int64_t ledger) noexcept nogil
# Record that reads took these slots.
cdef void page_take(Page* page, uint32_t slot, uint32_t n) noexcept nogil
# Append a copy of an entry, or a slot for a record that lies at `offset`. Return False if the page is full.
cdef bint page_append(Page* page, const uint8_t* entry, uint32_t size) noexcept nogil
cdef bint page_add_slot(Page* page, uint32_t offset) noexcept nogil
