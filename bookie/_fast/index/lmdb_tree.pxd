"""Walks a tree of an LMDB file in key order, past damage as well; each page is checked as in `lmdb_pages`.

One thread for each walk. A page that is reached twice, or that `seen` holds from the start (the free pages), is
damage.
"""
from libc.stdint cimport uint8_t, uint64_t

from bookie._fast.base.types cimport Status
from bookie._fast.index.lmdb_pages cimport Node, PageFile, Tree

# `value` has node.value_size bytes and is valid during the call. Any result but OK ends the walk.
ctypedef Status (*node_fn)(void* context, const Node* node, const uint8_t* value) noexcept nogil
# Called when something between the node before and the next one is unreadable.
ctypedef void (*lost_fn)(void* context) noexcept nogil

cdef struct TreeWalk:
    PageFile file
    uint8_t* seen                # a bit for each page, file.last + 1 of them; NULL: pages are not remembered
    node_fn each
    lost_fn lost
    void* context
    uint64_t pages               # number of pages read, overflow pages included
    bint outdated                # a sound page was at the place of another: the disk lost or misplaced some write
    bint by_number
    uint8_t* images              # pages of the current path; owned by the walk

# Return OK, even if something was lost; NO_MEMORY; or the result of `each`.
cdef Status tree_walk(TreeWalk* walk, const Tree* tree) noexcept nogil
cdef uint8_t* seen_pages(const PageFile* file) noexcept nogil
# Mark a page as seen. Return False if it was seen before or lies outside the file.
cdef bint see_page(uint8_t* seen, const PageFile* file, uint64_t page) noexcept nogil
# Mark every page that a commit's free list names. CORRUPT: the list is unreadable, or names a page twice or outside.
cdef Status see_free_pages(uint8_t* seen, const PageFile* file, const Tree* tree) noexcept nogil
