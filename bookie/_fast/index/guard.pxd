"""Checks the pages that LMDB is about to use, so that a write transaction never begins on damage or walks into it.

LMDB 0.9 trusts its file: a wrong count, child or free page makes it copy with wrong sizes, loop, end the process, or
overwrite a page that is in use. So after each of our commits the guard remembers both meta pages, the roots, and a
checksum of the main tree and of the free list, and the next transaction begins only if they are the same. A put or
delete waits until the pages on its path, and their neighbours that a merge may touch, were found sound, each once in a
transaction. It belongs to the writing thread.
"""
from libc.stdint cimport uint8_t, uint32_t, uint64_t

from bookie._fast.base.types cimport Status
from bookie._fast.index.branch_sums cimport BranchSums
from bookie._fast.index.codec cimport RUN_KEY_BYTES
from bookie._fast.index.commit_value cimport CommitValue
from bookie._fast.index.lmdb_pages cimport TREE_DEPTH_MOST, Meta, PageFile, Tree

cdef enum:
    TABLE_LOCATIONS = 0
    TABLE_LEDGERS = 1
    TABLE_FENCES = 2
    TABLE_DOUBTS = 3
    TABLES = 4
    WHOLE_TABLE_PAGES_MAX = 1024  # of a table that is read as a whole at a start

cdef struct Guard:
    PageFile file                # as of the last commit
    Meta meta
    Tree tables[TABLES]
    bint found                   # the newest meta page could be told and read
    bint roots_known             # `tables` are those of the last commit
    bint numbered                # the main tree has the number of a commit
    CommitValue commit           # what it says then
    uint32_t named               # a bit for each table that the main tree has
    bint stale                   # the main tree says that it belongs to another commit than the newest meta page
    uint32_t metas_crc
    uint32_t trees_crc           # of the main tree and the free list
    # A bit for each page, since the transaction began:
    uint8_t* sound               # it was checked
    uint8_t* edges               # it is a branch, and the first and last pages below it were checked
    uint64_t sound_bytes         # of each of the two
    uint8_t* images              # pages on a path that were found sound since the transaction began
    uint64_t[TREE_DEPTH_MOST] pictured      # their numbers; 0 for none
    const BranchSums* sums       # of the branches of TABLE_LOCATIONS; NULL if unknown
    bint summed                  # the range being checked is in that table
    # Since the transaction began, a leaf of TABLE_LOCATIONS and its neighbours were checked; the keys that belong to it
    # are in [leaf_first, leaf_end).
    bint leaf_known
    uint8_t[RUN_KEY_BYTES] leaf_first
    uint8_t[RUN_KEY_BYTES] leaf_end

cdef const char** TABLE_NAMES

cdef void guard_init(Guard* guard) noexcept nogil
cdef void guard_free(Guard* guard) noexcept nogil
# Read the newest commit of `fd` and remember it. Return OK; CORRUPT, also if the free list names a page twice, one
# outside the file or one of the main tree, or if the main tree is of another commit or lacks a table; IO_ERROR;
# NO_MEMORY.
cdef Status guard_learn(Guard* guard, int fd) noexcept nogil
# Begin a transaction. CORRUPT: the meta pages or trees are not those of our last commit, or are unreadable. Nothing
# has been written then, and a repair of the index copies what is readable.
cdef Status guard_begin(Guard* guard) noexcept nogil
# Check that each page of the file is free, or belongs to the main tree, the free list or a table, as their numbers of
# pages say. Return OK, CORRUPT or NO_MEMORY.
cdef Status guard_sum(const Guard* guard) noexcept nogil
# Look for the tables in the bytes of the main tree's root, whatever else is damaged in it: each name may have one wrong
# bit. Return whether the tables of runs and of ledgers were found. What is found may be of an earlier commit.
cdef bint guard_guess(Guard* guard) noexcept nogil
# Check every page of a table, and each value of the fences; `sum_` gets the sum of all values (index.commit_value).
# Return OK; CORRUPT, also if the commit says another sum; IO_ERROR; NO_MEMORY.
cdef Status guard_whole(const Guard* guard, uint32_t table, uint64_t* sum_) noexcept nogil
# Return whether the commit says another sum of a table.
cdef bint guard_is_older(const Guard* guard, uint32_t table, uint64_t sum_) noexcept nogil
# Check the pages before keys in [low, high] of a table are read, put or deleted. CORRUPT as in guard_begin.
cdef Status guard_range(Guard* guard, uint32_t table, const uint8_t* low, const uint8_t* high,
                        uint32_t key_size) noexcept nogil
