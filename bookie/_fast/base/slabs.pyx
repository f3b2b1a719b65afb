"""Slabs on the heap. They hold few items at first: most owners have few."""
from libc.stdint cimport uint32_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset

cdef enum:
    ROOM_FIRST = 4
    ROOM_MOST = 32


cdef void* slabs_take(Slabs* slabs) noexcept nogil:
    cdef void* item = slabs.unused
    if item != NULL:
        slabs.unused = (<void**> item)[0]
        (<void**> item)[0] = NULL
        return item
    if (slabs.newest == NULL or slabs.newest.taken == slabs.newest.room) and not grow(slabs):
        return NULL
    item = slab_item(slabs, slabs.newest, slabs.newest.taken)
    slabs.newest.taken += 1
    memset(item, 0, slabs.item_bytes)
    return item


cdef bint grow(Slabs* slabs) noexcept nogil:
    cdef uint32_t room = ROOM_FIRST if slabs.newest == NULL else min(slabs.newest.room * 2, <uint32_t> ROOM_MOST)
    cdef Slab* slab = <Slab*> malloc(sizeof(Slab) + <size_t> room * slabs.item_bytes)
    if slab == NULL:
        return False
    slab.older = slabs.newest
    slab.room = room
    slab.taken = 0
    slabs.newest = slab
    return True


cdef void slabs_give_back(Slabs* slabs, void* item) noexcept nogil:
    memset(item, 0, slabs.item_bytes)
    (<void**> item)[0] = slabs.unused
    slabs.unused = item


cdef void slabs_clear(Slabs* slabs) noexcept nogil:
    cdef Slab* slab = slabs.newest
    cdef Slab* older
    while slab != NULL:
        older = slab.older
        free(slab)
        slab = older
    slabs.newest = NULL
    slabs.unused = NULL


cdef class Items:
    """Items of 48 bytes, for tests; an item's name is its address."""
    cdef Slabs slabs

    def __cinit__(self):
        self.slabs.item_bytes = 48

    def __dealloc__(self):
        slabs_clear(&self.slabs)

    def take(self) -> int:
        """Take an item, check that it is all zeros, and fill it."""
        cdef unsigned char* item = <unsigned char*> slabs_take(&self.slabs)
        if item == NULL:
            raise MemoryError("no memory for an item")
        if bytes(item[:48]) != bytes(48):
            raise AssertionError("a new item is not all zeros")
        memset(item, 0xff, 48)
        return <uint64_t> item

    def give_back(self, item: int) -> None:
        """Give an item back."""
        slabs_give_back(&self.slabs, <void*> <uint64_t> item)

    def names(self) -> list[int]:
        """Return the names of all items of all slabs, those that were given back, too."""
        cdef Slab* slab = self.slabs.newest
        found = []
        while slab != NULL:
            for i in range(slab.taken):
                found.append(<uint64_t> slab_item(&self.slabs, slab, i))
            slab = slab.older
        return found

    def clear(self) -> None:
        """Free all items."""
        slabs_clear(&self.slabs)
