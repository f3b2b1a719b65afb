"""What the bookie can hold: the one statement of its limits (docs/limits.md). No state; any thread.

The wire, admission, journal, entry log, index, scans, compaction, replay, rebuild and configuration take their limits
from here, so that whatever one stage takes every later one can carry. Limits that follow from the configuration are
derived here, too. Sizes are bytes; an entry's size is without its length word.
"""
from libc.stdint cimport int64_t, uint32_t, uint64_t

from bookie._fast.base.types cimport LENGTH_PREFIX, MASTER_KEY_BYTES

cdef extern from *:
    """
    #include <stdint.h>
    /* A stored run ends in front of first + count, and "behind every entry" is INT64_MAX: one id is left for that. */
    #define BK_ENTRY_ID_MAX (INT64_MAX - 1)
    """
    const int64_t ENTRY_ID_MAX "BK_ENTRY_ID_MAX"

cdef enum:
    FRAME_BYTES_MIN = 1024
    FRAME_BYTES_MAX = 0x10000000         # 256 MiB, its length word included
    ADD_FRAME_BYTES = 28                 # the least of an add's frame beside the entry: V2's length, header and key
    RECORD_BYTES_MAX = FRAME_BYTES_MAX   # of one entry in journal and entry log; a longer length word is damage
    GROUP_BYTES_MAX = 0x40000000         # 1 GiB: of one journal group, which counts its bytes in 32 bits
    JOURNAL_FILE_BYTES_MAX = 0x80000000  # 2 GiB; one group more still lies below what 32 bits tell
    LOG_LIMIT_MAX = 0x40000000           # 1 GiB: where a log is closed
    LOG_BYTES_MAX = 0x7FFFFFFF           # no log may grow beyond, whatever the limit of its writer says
    LAC_PACKET_MIN = 16                  # ledger and LAC
    LAC_PACKET_MAX = 64                  # that a client may store; ids and the longest digest take 36
    STORED_LAC_MAX = 1 << 20             # that the index holds, of older data
    STORED_KEY_MAX = 0xFFFF
    HALF_OVERHEAD = 1024                 # what a half of the write cache needs beside one entry, at most
    GROUP_ROUNDING = 4096                # group buffers are multiples of this

cdef inline bint ids_hold(int64_t ledger, int64_t entry) noexcept nogil:
    """Whether an entry with these ids can be stored."""
    return ledger >= 0 and 0 <= entry <= ENTRY_ID_MAX

cdef inline bint lac_holds(int64_t lac) noexcept nogil:
    """Whether a LAC names an entry that can be stored, or none (negative)."""
    return lac <= ENTRY_ID_MAX

cdef inline int64_t lac_told(int64_t lac) noexcept nogil:
    """A LAC as older data tells it: -1 for one that no entry can have."""
    return lac if lac <= ENTRY_ID_MAX else -1

cdef inline bint key_holds(uint32_t size) noexcept nogil:
    """Whether a master key of so many bytes may become a ledger's: a digest of SHA-1, or none. What older data holds
    may be longer; it stays, and its owner is known by it.
    """
    return size == 0 or size == MASTER_KEY_BYTES

cdef inline uint64_t group_capacity(uint64_t buffer_bytes, uint64_t alignment) noexcept nogil:
    """Records, length words included, that one group of a journal takes: half the buffer less padding; 0: none."""
    cdef uint64_t half = buffer_bytes // 2 // GROUP_ROUNDING * GROUP_ROUNDING
    if half <= 3 * alignment:
        return 0
    return min(half - 3 * alignment, <uint64_t> GROUP_BYTES_MAX - 3 * alignment)
