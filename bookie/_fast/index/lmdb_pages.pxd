"""The file of an LMDB 0.9 environment, read with pread and checked before it is believed: meta pages and trees.

LMDB itself trusts its map: a wrong byte count, child or key sends it anywhere. Here each page is looked at whole
(number, flags, bounds, nodes side by side, keys in order, children inside of the file and between their parent's keys),
so that damage is an answer. What a value holds is its owner's to check. Any thread, no state but the caller's.
"""
from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t

from bookie._fast.base.types cimport Status

cdef enum:
    PAGE_HEAD_BYTES = 16
    PAGE_BYTES_MOST = 0x10000
    TREE_DEPTH_MOST = 32         # as LMDB's own
    META_BYTES = 152             # of a meta page, behind its head
    NODE_BIG = 1                 # the value lies on pages of its own
    NODE_TABLE = 2               # the value is the root of a table
    TABLE_BYTES = 48

cdef enum:
    NO_PAGE = -1                 # as uint64_t: an empty tree

cdef struct Tree:
    uint64_t root
    uint64_t entries
    uint64_t pages               # of all kinds
    uint16_t depth
    bint by_number               # keys are numbers in the machine's order, as the free list's

cdef struct Meta:
    # What a commit made of the file.
    uint64_t transaction
    uint64_t last                # page
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
    uint64_t child               # of a branch; of a leaf: the first page of a big value
    const uint8_t* value         # NULL: it is big
    uint32_t value_size

# The newest of the two commits in the file. CORRUPT: a meta page is none, or the two are not of commits that follow
# each other, as they are unless one was changed by somebody else; IO_ERROR.
cdef Status meta_newest(int fd, Meta* meta) noexcept nogil
# `raw` is META_BYTES + PAGE_HEAD_BYTES of a meta page.
cdef Status meta_parse(const uint8_t* raw, Meta* meta) noexcept nogil
cdef Status table_parse(const Node* node, Tree* tree) noexcept nogil

# Page `number` of a tree into page[page_bytes]. OK, CORRUPT or IO_ERROR.
cdef Status page_read(const PageFile* file, uint64_t number, bint by_number, uint8_t* page) noexcept nogil
cdef Status page_check(const uint8_t* page, uint32_t page_bytes, uint64_t number, uint64_t last,
                       bint by_number) noexcept nogil
cdef bint page_is_branch(const uint8_t* page) noexcept nogil
cdef uint32_t page_count(const uint8_t* page) noexcept nogil
cdef void page_node(const uint8_t* page, uint32_t index, Node* node) noexcept nogil
# How `a` stands to `b`: below 0, 0, above 0.
cdef int key_order(const uint8_t* a, uint32_t a_size, const uint8_t* b, uint32_t b_size, bint by_number) noexcept nogil
# How many pages a big value of this size takes.
cdef uint64_t big_pages(const PageFile* file, uint32_t size) noexcept nogil
# The head of the pages of a big value: that it is what the node says. OK, CORRUPT or IO_ERROR.
cdef Status big_check(const PageFile* file, const Node* node) noexcept nogil
# A big value, for the caller to free; NULL with *status.
cdef uint8_t* big_read(const PageFile* file, const Node* node, Status* status) noexcept nogil
# Whether a page's keys lie in [low, high); NULL: no bound.
cdef bint page_within(const uint8_t* page, const Node* low, const Node* high, bint by_number) noexcept nogil
