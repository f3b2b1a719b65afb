"""A tree of an LMDB file walked in the order of its keys, behind damage too, each page checked as `lmdb_pages` has it.

One thread a walk. A page that is reached twice, or that `seen` names from the start (the free ones), is damage.
"""
from libc.stdint cimport uint8_t, uint64_t

from bookie._fast.base.types cimport Status
from bookie._fast.index.lmdb_pages cimport Node, PageFile, Tree

# `value` has node.value_size bytes and lives during the call. Any answer but OK ends the walk.
ctypedef Status (*node_fn)(void* context, const Node* node, const uint8_t* value) noexcept nogil
# Something that lay between the node before and the next one cannot be read.
ctypedef void (*lost_fn)(void* context) noexcept nogil

cdef struct TreeWalk:
    PageFile file
    uint8_t* seen                # a bit a page, file.last + 1 of them; NULL: pages are not remembered
    node_fn each
    lost_fn lost
    void* context
    uint64_t pages               # that were read, those of big values too
    bint by_number
    uint8_t* images              # of the path; the walk's own

# OK whether or not something was lost; NO_MEMORY; what `each` answered.
cdef Status tree_walk(TreeWalk* walk, const Tree* tree) noexcept nogil
cdef uint8_t* seen_pages(const PageFile* file) noexcept nogil
# False: it was there, or is outside of the file.
cdef bint see_page(uint8_t* seen, const PageFile* file, uint64_t page) noexcept nogil
# Every page that the free list of a commit names. CORRUPT: the list cannot be read, or names a page twice or none.
cdef Status see_free_pages(uint8_t* seen, const PageFile* file, const Tree* tree) noexcept nogil
