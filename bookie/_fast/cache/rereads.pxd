"""Which entries were read from disk before: a table of fixed size that forgets the least recently read ones.

Entries are remembered in blocks of 64 consecutive ids, with one bit each. A block takes 16 bytes, four blocks are a
set, and a set is one cache line of the processor. The set of a block is chosen by hash; in it, the block read longest
ago is replaced. So an entry is counted if it is read again while its block is remembered. In crowded sets blocks are
forgotten early: 2 % when a quarter of the table is in use, 14 % at half. An entry that was not read before is
practically never counted, since two blocks would need the same 64-bit hash.
"""
from libc.stdint cimport int64_t, uint32_t, uint64_t

from bookie._fast.base.sync cimport pthread_mutex_t
from bookie._fast.cache.pages cimport Page

cdef enum:
    BLOCK_ENTRIES = 64
    SET_BLOCKS = 4
    SET_BYTES = 64

cdef struct BlockSet:
    uint64_t tags[SET_BLOCKS]    # hash of ledger and block, newest first; 0 if unused
    uint64_t bits[SET_BLOCKS]

cdef struct Rereads:
    pthread_mutex_t lock         # held while the blocks of one page are noted
    void* memory
    BlockSet* sets               # NULL: nothing is remembered
    uint64_t mask                # number of sets, a power of two, minus one

# Allocate at most `bytes`; nothing is remembered if that is less than a set. Return False if there is no memory.
# Memory pages of the table are only used once they are written.
cdef bint rereads_init(Rereads* rereads, uint64_t bytes) noexcept nogil
cdef void rereads_free(Rereads* rereads) noexcept nogil
# Remember the page's records; return how many of them were remembered already. Any thread.
cdef uint32_t rereads_note(Rereads* rereads, const Page* page) noexcept nogil
