"""Checksums of a tree's branch pages as one commit left them, kept in memory: what leads a search is what was written.

A flipped child of a branch may lead to a page that was in use before and still looks sound, checksums of its values
included: only the branch tells that it is of the past. So each one is summed up when it is new, and compared at each
use. LMDB never changes a page of a commit, it puts another one in its place: a page that was in the tree before is the
same, and so is all below it, and is not read again. Pages are kept beside their sums as far as a budget goes, the upper
levels first, so that a search of them costs neither a read nor a sum. 24 bytes a branch page, and 16 at most to find
it: 100 KiB a GiB of index, of which all branches are 10 MiB. Made by one thread, constant afterwards, read by any.
"""
from libc.stdint cimport uint8_t, uint32_t, uint64_t

from bookie._fast.base.file cimport FileOps
from bookie._fast.base.types cimport Status
from bookie._fast.index.lmdb_pages cimport PageFile, Tree

cdef struct BranchSum:
    uint64_t page
    uint8_t* image               # the page, shared by the sums of several commits; NULL: it is not kept
    uint32_t sum
    uint32_t below               # how many of the sums that follow are of pages below this one

cdef struct BranchSums:
    BranchSum* items             # as a walk meets the pages
    uint32_t count
    uint32_t room
    uint32_t* slots              # a hash by page: 1 + the place in `items`, 0: none
    uint32_t slots_mask
    uint32_t images              # how many pages are kept
    uint32_t images_most         # from then on those with leaves below them are not

# The sums of `tree`, given those of the commit before it (NULL: there is none). `seen`, unless NULL, has a bit for
# each page that must not be in it, and takes those that are. NULL with *status: CORRUPT, IO_ERROR, NO_MEMORY.
cdef BranchSums* sums_of(FileOps* ops, const PageFile* file, const Tree* tree, const BranchSums* before, uint8_t* seen,
                         uint32_t images_most, Status* status) noexcept nogil
cdef void sums_free(BranchSums* sums) noexcept nogil
# What is known of a page; NULL: it is none of the tree's branches.
cdef const BranchSum* sums_find(const BranchSums* sums, uint64_t page) noexcept nogil
# Whether `image` is what page `number` was; no page that is not in the tree is.
cdef bint sums_hold(const BranchSums* sums, uint64_t number, const uint8_t* image, uint32_t page_bytes) noexcept nogil
