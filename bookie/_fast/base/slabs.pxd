"""Memory for many items of one size that are mostly freed together, without an allocation for each.

Items are taken one after another from slabs, each larger than the one before up to a limit. An item that is given back
is taken again; its memory is freed only with all others. A zeroed Slabs without `item_bytes` is unused. One thread at
a time: the holder of the owner's lock.
"""
from libc.stdint cimport uint32_t

cdef struct Slab:
    Slab* older
    uint32_t room            # in items, which follow
    uint32_t taken

cdef struct Slabs:
    uint32_t item_bytes      # a multiple of 16
    Slab* newest             # the only one with items that were never taken
    void* unused             # items that were given back; each begins with a pointer to the next one

# Return an item of zeros, or NULL if there is no memory.
cdef void* slabs_take(Slabs* slabs) noexcept nogil
# Until it is taken again, the item is all zeros but for its first eight bytes.
cdef void slabs_give_back(Slabs* slabs, void* item) noexcept nogil
# Free all items.
cdef void slabs_clear(Slabs* slabs) noexcept nogil

cdef inline void* slab_item(const Slabs* slabs, Slab* slab, uint32_t at) noexcept nogil:
    """Return an item of a slab in the order in which they were first taken; it may have been given back."""
    return <char*> (slab + 1) + <size_t> at * slabs.item_bytes
