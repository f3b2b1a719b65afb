"""The limits for Python: those of the compiled modules, and those that follow from a configuration."""
from collections import namedtuple

from libc.stdint cimport int64_t, uint32_t, uint64_t

Bounds = namedtuple(
    "Bounds",
    "entry_id frame_bytes_least frame_bytes record_bytes group_bytes journal_file_bytes log_limit_bytes"
    " lac_packet_bytes directories io_loops read_threads journal_backups",
)
BOUNDS = Bounds(
    ENTRY_ID_MAX,
    FRAME_BYTES_MIN,
    FRAME_BYTES_MAX,
    RECORD_BYTES_MAX,
    GROUP_BYTES_MAX,
    <uint32_t> JOURNAL_FILE_BYTES_MAX,
    LOG_LIMIT_MAX,
    LAC_PACKET_MAX,
    DIRECTORIES_MAX,
    IO_LOOPS_MAX,
    READ_THREADS_MAX,
    JOURNAL_BACKUPS_MAX,
)


def entry_bytes_max(uint64_t frame_bytes) -> int:
    """Return the size of the largest entry that frames of `frame_bytes`, length word included, can carry."""
    return frame_bytes - ADD_FRAME_BYTES


def half_entry_bytes(uint64_t cache_bytes) -> int:
    """Return the size of the largest entry for a ledger directory's write cache of `cache_bytes` in two halves."""
    return max(0, <int64_t> (cache_bytes // 2) - HALF_OVERHEAD)


def group_entry_bytes(uint64_t buffer_bytes, uint64_t alignment) -> int:
    """Return the size of the largest entry that a journal group takes, given bytes and alignment of both buffers."""
    return max(0, <int64_t> group_capacity(buffer_bytes, alignment) - LENGTH_PREFIX)
