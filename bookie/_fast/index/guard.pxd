"""What LMDB is about to lean on, looked at before it does: a write transaction never begins on, or walks into, damage.

LMDB 0.9 believes its file: a wrong count, child or free page makes it copy with wrong sizes, loop, end the process, or
write over a page that is in use. So after each commit of ours we remember both meta pages, the roots, and a checksum of
the main tree and of the free list; the next transaction begins only if they are the same. A put or delete waits until
the pages on its path, and those beside it that a merge may touch, were found sound: each once a transaction.
The writing thread's.
"""
from libc.stdint cimport uint8_t, uint32_t, uint64_t

from bookie._fast.base.types cimport Status
from bookie._fast.index.branch_sums cimport BranchSums
from bookie._fast.index.lmdb_pages cimport TREE_DEPTH_MOST, Meta, PageFile, Tree

cdef enum:
    TABLE_LOCATIONS = 0
    TABLE_LEDGERS = 1
    TABLE_FENCES = 2
    TABLE_DOUBTS = 3
    TABLES = 4

cdef struct Guard:
    PageFile file                # of the last commit
    Meta meta
    Tree tables[TABLES]
    bint roots_known             # `tables` are those of the last commit
    uint32_t metas_crc
    uint32_t trees_crc           # of the main tree and the free list
    uint8_t* sound               # a bit a page: checked since the transaction began
    uint64_t sound_bytes
    uint8_t* images              # of the pages on a path, found sound since the transaction began
    uint64_t[TREE_DEPTH_MOST] pictured      # their numbers; 0: none
    const BranchSums* sums       # of the branches of TABLE_LOCATIONS; NULL: not known
    bint summed                  # the range that is looked at is in that table

cdef void guard_init(Guard* guard) noexcept nogil
cdef void guard_free(Guard* guard) noexcept nogil
# Look at the newest commit of `fd` and remember it. OK; CORRUPT, also when the free list names a page twice or one that
# is outside of the file; IO_ERROR; NO_MEMORY.
cdef Status guard_learn(Guard* guard, int fd) noexcept nogil
# A transaction begins. CORRUPT: the file's heads are not what our last commit left, or cannot be read: nothing is
# written yet, and whoever repairs the index copies what can be.
cdef Status guard_begin(Guard* guard) noexcept nogil
# Every page of a table is sound, and each value of the fences. OK, CORRUPT, IO_ERROR or NO_MEMORY.
cdef Status guard_whole(const Guard* guard, uint32_t table) noexcept nogil
# Keys in [low, high] of a table are about to be read, put or deleted. CORRUPT: as before.
cdef Status guard_range(Guard* guard, uint32_t table, const uint8_t* low, const uint8_t* high,
                        uint32_t key_size) noexcept nogil
