"""Mapping, returning and moving the memory of regions. No locks; the caller owns the regions."""
from libc.stdint cimport uint8_t, uint64_t
from posix.mman cimport MAP_ANONYMOUS, MAP_FAILED, MAP_NORESERVE, MAP_PRIVATE, PROT_READ, PROT_WRITE, mmap, munmap

from bookie._fast.base.sync cimport bk_store

cdef extern from *:
    """
    #include <errno.h>
    #include <sys/mman.h>
    #ifndef MREMAP_DONTUNMAP
    #define MREMAP_DONTUNMAP 4       /* Linux 5.7 */
    #endif
    #ifndef MAP_FIXED_NOREPLACE
    #define MAP_FIXED_NOREPLACE 0x100000
    #endif
    static inline int bk_move_memory(void* from, void* to, size_t bytes) {
        return mremap(from, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP, to) == to;
    }
    /* A move that failed may have left a hole where it was to go. Return whether there is none any more. */
    static inline int bk_mend_hole(void* at, size_t bytes) {
        void* got = mmap(at, bytes, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
        if (got == MAP_FAILED)
            return errno == EEXIST;
        if (got != at)
            munmap(got, bytes);
        return got == at;
    }
    """
    bint bk_move_memory(void* source, void* to, size_t size) noexcept nogil
    bint bk_mend_hole(void* at, size_t size) noexcept nogil
    int madvise(void*, size_t, int) noexcept nogil
    int MADV_HUGEPAGE
    int MADV_DONTNEED

cdef enum:
    PAGE_BYTES = 4096            # of the operating system
    SMALL_PIECE = 1 << 16        # moved at once where regions are small
    PIECES_MOST = 128            # of a larger region


cdef inline uint64_t rounded_up(uint64_t size, uint64_t unit) noexcept nogil:
    """Round up to a multiple of a power of two."""
    return (size + unit - 1) & ~(unit - 1)


cdef bint region_map(Region* region, uint64_t size) noexcept nogil:
    cdef uint64_t unit = HUGE_BYTES if size >= HUGE_LEAST else PAGE_BYTES
    cdef uint64_t most = rounded_up(size, PAGE_BYTES) + unit - PAGE_BYTES
    cdef void* base = mmap(NULL, most, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)
    cdef uint64_t begin, end
    if base == MAP_FAILED:
        return False
    begin = rounded_up(<uint64_t> base, unit)      # whole huge pages are moved by one entry of a page table
    end = begin + rounded_up(size, PAGE_BYTES)
    if begin > <uint64_t> base:
        munmap(base, begin - <uint64_t> base)
    if end < <uint64_t> base + most:
        munmap(<void*> end, <uint64_t> base + most - end)
    if size >= HUGE_LEAST:
        madvise(<void*> begin, size, MADV_HUGEPAGE)
    region.base = <uint8_t*> begin
    region.size = size
    region.touched = 0
    bk_store(&region.pins, 0)
    bk_store(&region.wanted, 0)
    return True


cdef void region_unmap(Region* region) noexcept nogil:
    if region.base != NULL:
        munmap(region.base, region.size)
        region.base = NULL


cdef void region_cut(Region* region, uint64_t keep) noexcept nogil:
    keep = rounded_up(keep, PAGE_BYTES)
    if keep < region.size:
        madvise(region.base + keep, region.size - keep, MADV_DONTNEED)
    region.touched = min(region.touched, keep)


cdef uint64_t piece_of(uint64_t size) noexcept nogil:
    """Return how much is moved at once in regions of this size. Each piece may become a mapping of its own, of which
    the operating system allows a process 65,530.
    """
    cdef uint64_t piece = HUGE_BYTES
    if size < HUGE_LEAST:
        return SMALL_PIECE
    while size // piece > PIECES_MOST:
        piece *= 2
    return piece


cdef bint region_pass_on(Region* region, uint64_t keep, Region* to) noexcept nogil:
    cdef uint64_t piece = piece_of(max(region.size, to.size))
    cdef uint64_t end = min(rounded_up(region.touched, piece), region.size // piece * piece)
    cdef uint64_t at = rounded_up(to.touched, piece)
    cdef uint64_t begin, moving
    keep = rounded_up(keep, piece)
    if end <= keep or at + piece > to.size:
        return True
    begin = moving = max(keep, end - min(end, (to.size - at) // piece * piece))
    # Piece by piece: before Linux 6.17, memory that has come from several places cannot be moved at once. In the same
    # order, so that neighbours become one mapping.
    while moving < end:
        if not bk_move_memory(region.base + moving, to.base + at, piece):
            if bk_mend_hole(to.base + at, piece):
                return True
            to.size = at
            return False
        moving += piece
        at += piece
        to.touched = at
    region.touched = begin
    return True


cdef class Memory:
    """Two regions, for tests."""
    cdef Region regions[2]

    def __cinit__(self, size: int, other: int):
        if not region_map(&self.regions[0], size) or not region_map(&self.regions[1], other):
            raise MemoryError("no address space")

    def __dealloc__(self):
        region_unmap(&self.regions[0])
        region_unmap(&self.regions[1])

    def write(self, which: int, at: int, data: bytes) -> None:
        """Write bytes into a region."""
        cdef uint64_t begin = at
        cdef Region* region = &self.regions[which]
        cdef const uint8_t[::1] view = data
        cdef uint64_t i
        for i in range(<uint64_t> view.shape[0]):
            region.base[begin + i] = view[i]
        region.touched = max(region.touched, begin + <uint64_t> view.shape[0])

    def read(self, which: int, at: int, size: int) -> bytes:
        """Return bytes of a region."""
        return (<char*> self.regions[which].base + <uint64_t> at)[:size]

    def touched(self, which: int) -> int:
        """Return how much of a region was touched."""
        return self.regions[which].touched

    def cut(self, which: int, keep: int) -> None:
        """Give the memory behind the first bytes back."""
        region_cut(&self.regions[which], keep)

    def size(self, which: int) -> int:
        """Return the size of a region."""
        return self.regions[which].size

    def pass_on(self, which: int, keep: int) -> bool:
        """Move what a region has touched behind its first bytes to the other one. False: that one has lost a part."""
        return region_pass_on(&self.regions[which], keep, &self.regions[1 - which])
