"""The memory of the write cache's halves, from the operating system and from each other.

Memory that is touched for the first time is cleared by the operating system, which for a bookie that takes adds all the
time cost more than the copies of its entries. So what one half does not need is moved to another address, where the
next half finds it: only page tables change.
"""
from libc.stdint cimport uint64_t

from bookie._fast.cache.pages cimport Region

cdef enum:
    HUGE_BYTES = 2 << 20     # the operating system gives memory in pieces of this size to regions of
    HUGE_LEAST = 32 << 20    # at least this size

# Reserve address space for a region that has none. Return False if there is none.
cdef bint region_map(Region* region, uint64_t size) noexcept nogil
# Give the memory and address space of a region back, if it has any.
cdef void region_unmap(Region* region) noexcept nogil
# Give the memory behind the first `keep` bytes back, which will be zeros when it is used again.
cdef void region_cut(Region* region, uint64_t keep) noexcept nogil
# Move touched memory behind the first `keep` bytes to the end of what `to` has touched, in whole pieces and as much as
# fits; its bytes there are undefined. It is zeros here when it is used again. Nobody may use either part meanwhile.
# Where the operating system cannot move memory, nothing happens. Return False if it has lost a part of the address
# space of `to` in the attempt: `to.size` ends before that part then.
cdef bint region_pass_on(Region* region, uint64_t keep, Region* to) noexcept nogil
