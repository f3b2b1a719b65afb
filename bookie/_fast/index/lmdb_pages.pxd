"""The file of an LMDB 0.9 environment, read with pread and checked before use: meta pages and the pages of trees.

LMDB itself trusts its map: a wrong byte count, child or key sends it anywhere. Here each page is checked as a whole
(number, flags, bounds, nodes that do not overlap, ascending keys, children inside the file, keys between those of the
parent), so that damage becomes a status. Values are checked by their owners. Any thread; the caller owns all state.
"""
from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t

from bookie._fast.base.types cimport Status

cdef enum:
    PAGE_HEAD_BYTES = 16
    PAGE_BYTES_MOST = 0x10000
    TREE_DEPTH_MOST = 32         # LMDB's own limit
    META_BYTES = 152             # of a meta page, after its header
    NODE_BIG = 1                 # the value is on overflow pages
    NODE_TABLE = 2               # the value is the root of a table
    TABLE_BYTES = 48

cdef enum:
    NO_PAGE = -1                 # as uint64_t: the root of an empty tree

cdef struct Tree:
    uint64_t root
    uint64_t entries
    uint64_t pages               # of all kinds
    uint32_t pad                 # 0; in the free tree the size of a page
    uint16_t flags
    uint16_t depth
    bint by_number               # keys are numbers in native byte order, as in the free list

cdef struct Meta:
    # The state of the file after a commit.
    uint64_t transaction
    uint64_t last                # the last page number
    uint64_t map_bytes
    uint32_t page_bytes
    Tree free
    Tree main

cdef struct PageFile:
    int fd
    uint32_t page_bytes
    uint64_t last

cdef struct Node:
    const uint8_t* key
    uint32_t key_size
    uint16_t flags
    uint64_t child               # of a branch; in a leaf the first page of a big value
    const uint8_t* value         # NULL if it is big
    uint32_t value_size

# Read the newer of the file's two commits. CORRUPT: a meta page is invalid or contradicts itself, or the two are not
# successive commits, as they must be unless something else changed one; IO_ERROR.
cdef Status meta_newest(int fd, Meta* meta) noexcept nogil
# `raw` holds the header and the META_BYTES of a meta page.
cdef Status meta_parse(const uint8_t* raw, Meta* meta) noexcept nogil
cdef Status table_parse(const Node* node, Tree* tree) noexcept nogil
# Take the description of a tree from TABLE_BYTES bytes, unchecked.
cdef void tree_at(const uint8_t* at, bint by_number, Tree* tree) noexcept nogil

# Read page `number` of a tree into page[page_bytes] and check it. Return OK, CORRUPT or IO_ERROR.
cdef Status page_read(const PageFile* file, uint64_t number, bint by_number, uint8_t* page) noexcept nogil
cdef Status page_check(const uint8_t* page, uint32_t page_bytes, uint64_t number, uint64_t last,
                       bint by_number) noexcept nogil
cdef bint page_is_branch(const uint8_t* page) noexcept nogil
cdef uint32_t page_count(const uint8_t* page) noexcept nogil
cdef void page_node(const uint8_t* page, uint32_t index, Node* node) noexcept nogil
# Compare two keys: negative, 0 or positive, like memcmp.
cdef int key_order(const uint8_t* a, uint32_t a_size, const uint8_t* b, uint32_t b_size, bint by_number) noexcept nogil
# Return how many pages a big value of this size takes.
cdef uint64_t big_pages(const PageFile* file, uint32_t size) noexcept nogil
# Check that the first overflow page of a big value is as the node says. Return OK, CORRUPT or IO_ERROR.
cdef Status big_check(const PageFile* file, const Node* node) noexcept nogil
# Read a big value, which the caller frees. Return NULL with *status set on failure.
cdef uint8_t* big_read(const PageFile* file, const Node* node, Status* status) noexcept nogil
# Return whether a page's keys lie in [low, high), where NULL means no bound.
cdef bint page_within(const uint8_t* page, const Node* low, const Node* high, bint by_number) noexcept nogil
