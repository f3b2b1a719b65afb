"""The limits of what a bookie can hold, stated once (docs/limits.md). No state; any thread.

The parsers, admission, journal, entry log, index, scans, compaction, replay, rebuild and configuration all take their
limits from this module, so that every later stage can carry what an earlier one accepted. Limits that depend on the
configuration are derived here too. Sizes are in bytes; the size of an entry does not include its length word.
"""
from libc.stdint cimport int64_t, uint32_t, uint64_t

from bookie._fast.base.types cimport LENGTH_PREFIX, MASTER_KEY_BYTES

cdef extern from *:
    """
    #include <stdint.h>
    /* A stored run ends before first + count, and INT64_MAX means "after every entry": one id is kept free for that. */
    #define BK_ENTRY_ID_MAX (INT64_MAX - 1)
    """
    const int64_t ENTRY_ID_MAX "BK_ENTRY_ID_MAX"

cdef enum:
    FRAME_BYTES_MIN = 1024
    FRAME_BYTES_MAX = 0x10000000         # 256 MiB, its length word included
    ADD_FRAME_BYTES = 28                 # the smallest frame overhead of an add: V2's length word, header and key
    RECORD_BYTES_MAX = FRAME_BYTES_MAX   # of one entry in journal and entry log; a larger length word is damage
    GROUP_BYTES_MAX = 0x40000000         # 1 GiB; the header of a journal group counts its bytes in 32 bits
    JOURNAL_FILE_BYTES_MAX = 0x80000000  # 2 GiB; with one more group, positions still fit into 32 bits
    LOG_LIMIT_MAX = 0x40000000           # 1 GiB; the largest size limit at which an entry log is closed
    LOG_BYTES_MAX = 0x7FFFFFFF           # an entry log never grows beyond this, whatever its size limit says
    LAC_PACKET_MIN = 16                  # ledger id and LAC
    LAC_PACKET_MAX = 64                  # what a client may store; ids and the longest digest take 36
    STORED_LAC_MAX = 1 << 20             # what the index may hold from older data
    STORED_KEY_MAX = 0xFFFF
    HALF_OVERHEAD = 1024                 # the most that a half of the write cache needs besides one entry
    GROUP_ROUNDING = 4096                # group buffers are multiples of this
    DIRECTORIES_MAX = 64                 # ledger directories, and journal directories
    IO_LOOPS_MAX = 64                    # a ledger has one bit for each loop whose long polls wait for it
    READ_THREADS_MAX = 256               # each has a reader of its directory's location index
    JOURNAL_BACKUPS_MAX = 1000           # far fewer than the files that a journal can list

cdef inline bint ids_hold(int64_t ledger, int64_t entry) noexcept nogil:
    """Return whether an entry with these ids can be stored."""
    return ledger >= 0 and 0 <= entry <= ENTRY_ID_MAX

cdef inline bint lac_holds(int64_t lac) noexcept nogil:
    """Return whether a LAC names an entry that can be stored, or no entry (negative)."""
    return lac <= ENTRY_ID_MAX

cdef inline int64_t valid_lac(int64_t lac) noexcept nogil:
    """Return a LAC as stored by older versions, or -1 if no entry can have that id."""
    return lac if lac <= ENTRY_ID_MAX else -1

cdef inline bint key_holds(uint32_t size) noexcept nogil:
    """Return whether a master key of `size` bytes may be given to a ledger: a SHA-1 digest, or none. Older data may
    hold longer keys; these stay valid for their owners.
    """
    return size == 0 or size == MASTER_KEY_BYTES

cdef inline uint64_t group_capacity(uint64_t buffer_bytes, uint64_t alignment) noexcept nogil:
    """Return how many bytes of records, length words included, one journal group takes: half the buffer less padding.
    """
    cdef uint64_t half = buffer_bytes // 2 // GROUP_ROUNDING * GROUP_ROUNDING
    if half <= 3 * alignment:
        return 0
    return min(half - 3 * alignment, <uint64_t> GROUP_BYTES_MAX - 3 * alignment)
