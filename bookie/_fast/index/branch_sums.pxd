"""Checksums of a tree's branch pages, taken when a commit wrote them and kept in memory to verify every later read.

A damaged child pointer in a branch may lead to a page of an earlier commit that still looks sound, checksums of its
values included; only the branch itself can show that it is wrong. So each branch page is checksummed when it is new,
and compared whenever it is used. LMDB never changes a page of a commit but writes a new one instead: a page that was
in the tree before is unchanged, with everything below it, and is not read again. Pages are kept in memory with their
checksums up to a limit, upper levels first, so that a search needs neither a read nor a checksum for them. Each branch
page takes 24 bytes, and at most 16 in the hash table: 100 KiB for each GiB of index, whose branches have 10 MiB. One
thread builds a BranchSums, which is constant afterwards and may be read by any thread.
"""
from libc.stdint cimport uint8_t, uint32_t, uint64_t

from bookie._fast.base.file cimport FileOps
from bookie._fast.base.types cimport Status
from bookie._fast.index.lmdb_pages cimport PageFile, Tree

cdef struct BranchSum:
    uint64_t page
    uint8_t* image               # the page, shared with other commits' sums; NULL if it is not kept
    uint32_t sum
    uint32_t below               # how many of the following sums are of pages below this one

cdef struct BranchSums:
    BranchSum* items             # in the order in which a walk meets the pages
    uint32_t count
    uint32_t room
    uint32_t* slots              # hash table by page number: 1 + index in `items`, 0 for an empty slot
    uint32_t slots_mask
    uint32_t images              # number of pages that are kept
    uint32_t images_most         # from this number on, pages directly above leaves are not kept; 0 keeps none

# Return the sums of `tree`, given those of the commit before (or NULL). `seen`, unless NULL, has a bit for each page
# that must not be in the tree, and gets those that are. Return NULL with *status CORRUPT, IO_ERROR or NO_MEMORY.
cdef BranchSums* sums_of(FileOps* ops, const PageFile* file, const Tree* tree, const BranchSums* before, uint8_t* seen,
                         uint32_t images_most, Status* status) noexcept nogil
cdef void sums_free(BranchSums* sums) noexcept nogil
# Return the sum of a page, or NULL if it is not a branch of the tree.
cdef const BranchSum* sums_find(const BranchSums* sums, uint64_t page) noexcept nogil
# Return whether `image` is page `number` as it was written; False for a page that is not a branch of the tree.
cdef bint sums_hold(const BranchSums* sums, uint64_t number, const uint8_t* image, uint32_t page_bytes) noexcept nogil
