"""Which entries were read from disk before: a table of fixed size that forgets the longest unread.

Entries are remembered in blocks of 64 consecutive ids, a bit each: 16 bytes a block, four blocks a set, a set in one
line of the CPU's cache. A block's set is chosen by hash; in it the block read longest ago gives way. So each entry is
counted that is read again while its block is remembered. Where a set is crowded, blocks are forgotten early: 2 % when a
quarter of the table is in use, 14 % at half. An entry that was not read before is practically never counted (two blocks
would have to share a hash of 64 bits).
"""
from libc.stdint cimport int64_t, uint32_t, uint64_t

from bookie._fast.base.sync cimport pthread_mutex_t
from bookie._fast.cache.pages cimport Page

cdef enum:
    BLOCK_ENTRIES = 64
    SET_BLOCKS = 4
    SET_BYTES = 64

cdef struct BlockSet:
    uint64_t tags[SET_BLOCKS]    # hash of ledger and block, newest first; 0: none
    uint64_t bits[SET_BLOCKS]

cdef struct Rereads:
    pthread_mutex_t lock         # held for the blocks of one page
    void* memory
    BlockSet* sets               # NULL: nothing is remembered
    uint64_t mask                # sets, less one: a power of two

# `bytes` of memory at most, less than a set: none. False without memory. Pages of the table cost once they are used.
cdef bint rereads_init(Rereads* rereads, uint64_t bytes) noexcept nogil
cdef void rereads_free(Rereads* rereads) noexcept nogil
# Remember the page's records; how many of them were remembered already. Any thread.
cdef uint32_t rereads_note(Rereads* rereads, const Page* page) noexcept nogil
