"""The bytes of each ledger in an entry log that is being written: a small open-addressing hash. The writer's thread."""
from libc.stdint cimport int64_t, uint64_t

from bookie._fast.base.types cimport Status

cdef enum:
    LEDGER_MAP_BYTES_LEAST = 1024    # allocated for a map of few ledgers

cdef struct LedgerBytes:
    int64_t ledger
    uint64_t bytes               # 0 for an empty slot

cdef struct LedgerMap:
    LedgerBytes* slots
    size_t capacity              # a power of two, or 0 before the first ledger
    size_t count

cdef void ledger_map_clear(LedgerMap* map) noexcept nogil
cdef void ledger_map_free(LedgerMap* map) noexcept nogil
# Make sure that the next ledger_map_add cannot fail. Return OK or NO_MEMORY.
cdef Status ledger_map_reserve(LedgerMap* map) noexcept nogil
cdef void ledger_map_add(LedgerMap* map, int64_t ledger, uint64_t bytes) noexcept nogil
# Move the `count` used slots to the front, sorted by ledger, and return them. Nothing can be added before the next
# clear.
cdef LedgerBytes* ledger_map_sorted(LedgerMap* map) noexcept nogil
