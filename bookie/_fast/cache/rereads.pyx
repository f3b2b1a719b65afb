"""Blocks of entries that were read from disk, in sets of four."""
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free

from bookie._fast.base.cursor cimport load_i64
from bookie._fast.base.sync cimport (
    pthread_mutex_destroy,
    pthread_mutex_init,
    pthread_mutex_lock,
    pthread_mutex_unlock,
)
from bookie._fast.base.types cimport LENGTH_PREFIX
from bookie._fast.cache.pages cimport Page, page_offset

cdef extern from *:
    int ones "__builtin_popcountll"(unsigned long long) noexcept nogil


cdef bint rereads_init(Rereads* rereads, uint64_t bytes) noexcept nogil:
    cdef uint64_t sets = 1
    pthread_mutex_init(&rereads.lock, NULL)
    rereads.memory = NULL
    rereads.sets = NULL
    rereads.mask = 0
    if bytes < SET_BYTES:
        return True
    while sets * 2 * SET_BYTES <= bytes:
        sets *= 2
    rereads.memory = calloc(sets + 1, SET_BYTES)
    if rereads.memory == NULL:
        return False
    rereads.sets = <BlockSet*> ((<uint64_t> rereads.memory + SET_BYTES - 1) & ~<uint64_t> (SET_BYTES - 1))
    rereads.mask = sets - 1
    return True


cdef void rereads_free(Rereads* rereads) noexcept nogil:
    if rereads.memory != NULL:
        free(rereads.memory)
        pthread_mutex_destroy(&rereads.lock)
    rereads.memory = NULL
    rereads.sets = NULL


cdef inline uint64_t tag_of(int64_t ledger, int64_t block) noexcept nogil:
    """Return the block's hash, never 0. The constants are those of Stafford's mix 13, which spreads every bit."""
    cdef uint64_t h = <uint64_t> ledger * <uint64_t> 0x9E3779B97F4A7C15 + <uint64_t> block
    h = (h ^ (h >> 30)) * <uint64_t> 0xBF58476D1CE4E5B9
    h = (h ^ (h >> 27)) * <uint64_t> 0x94D049BB133111EB
    h ^= h >> 31
    return h if h else 1


cdef uint32_t note_block(Rereads* rereads, int64_t ledger, int64_t block, uint64_t bits) noexcept nogil:
    """Remember these entries of a block, now the newest of its set; return how many were known. With the lock."""
    cdef uint64_t tag = tag_of(ledger, block)
    cdef BlockSet* where = &rereads.sets[(tag >> 8) & rereads.mask]
    cdef uint64_t known = 0
    cdef int i = 0
    while i < SET_BLOCKS - 1 and where.tags[i] != tag:
        i += 1
    if where.tags[i] == tag:
        known = where.bits[i]
    while i > 0:
        where.tags[i] = where.tags[i - 1]
        where.bits[i] = where.bits[i - 1]
        i -= 1
    where.tags[0] = tag
    where.bits[0] = known | bits
    return <uint32_t> ones(known & bits)


cdef inline int64_t id_at(const Page* page, uint32_t slot) noexcept nogil:
    return load_i64(page.data + page_offset(page, slot) + LENGTH_PREFIX + 8)


cdef uint32_t note_range(Rereads* rereads, int64_t ledger, int64_t first, int64_t last) noexcept nogil:
    cdef uint32_t known = 0
    cdef int64_t block, low, high
    for block in range(first // BLOCK_ENTRIES, last // BLOCK_ENTRIES + 1):
        low = max(first - block * BLOCK_ENTRIES, <int64_t> 0)
        high = min(last - block * BLOCK_ENTRIES, <int64_t> (BLOCK_ENTRIES - 1))
        known += note_block(rereads, ledger, block,
                            (~<uint64_t> 0 << low) & (~<uint64_t> 0 >> (BLOCK_ENTRIES - 1 - high)))
    return known


cdef uint32_t note_each(Rereads* rereads, const Page* page) noexcept nogil:
    """Remember the entries of a page with gaps."""
    cdef uint32_t known = 0
    cdef uint32_t slot
    cdef int64_t id
    cdef int64_t block = -1
    cdef uint64_t bits = 0
    for slot in range(page.slots):
        id = id_at(page, slot)
        if id // BLOCK_ENTRIES != block:
            if bits:
                known += note_block(rereads, page.ledger, block, bits)
            block = id // BLOCK_ENTRIES
            bits = 0
        bits |= <uint64_t> 1 << (id % BLOCK_ENTRIES)
    return known + note_block(rereads, page.ledger, block, bits)


cdef uint32_t rereads_note(Rereads* rereads, const Page* page) noexcept nogil:
    cdef int64_t first, last
    cdef uint32_t known
    if rereads.sets == NULL or page.slots == 0:
        return 0
    first = id_at(page, 0)
    last = id_at(page, page.slots - 1)
    pthread_mutex_lock(&rereads.lock)
    if last - first == <int64_t> page.slots - 1:
        known = note_range(rereads, page.ledger, first, last)
    else:
        known = note_each(rereads, page)
    pthread_mutex_unlock(&rereads.lock)
    return known


cdef class RereadsTable:
    """The table on its own, for tests."""
    cdef Rereads rereads

    def __cinit__(self, uint64_t bytes_max):
        if not rereads_init(&self.rereads, bytes_max):
            raise MemoryError

    def note(self, int64_t ledger, int64_t first, int64_t last) -> int:
        """Remember these entries; return how many of them were remembered already."""
        if not 0 <= first <= last:
            raise ValueError(f"entries {first} to {last} are not a range")
        return note_range(&self.rereads, ledger, first, last) if self.rereads.sets != NULL else 0

    def __dealloc__(self):
        rereads_free(&self.rereads)
