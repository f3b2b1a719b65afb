"""The limits as Python sees them: the very numbers of the compiled modules, and those that a configuration gives."""
from collections import namedtuple

from libc.stdint cimport int64_t, uint32_t, uint64_t

Bounds = namedtuple(
    "Bounds",
    "entry_id frame_bytes_least frame_bytes record_bytes group_bytes journal_file_bytes log_limit_bytes"
    " lac_packet_bytes",
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
)


def entry_bytes_max(uint64_t frame_bytes) -> int:
    """The largest entry that frames of so many bytes, length word included, can bring."""
    return frame_bytes - ADD_FRAME_BYTES


def half_entry_bytes(uint64_t cache_bytes) -> int:
    """The largest entry that the write cache of one ledger directory takes, given the bytes of both halves."""
    return max(0, <int64_t> (cache_bytes // 2) - HALF_OVERHEAD)


def group_entry_bytes(uint64_t buffer_bytes, uint64_t alignment) -> int:
    """The largest entry that a group of one journal takes, given the bytes of both its buffers and their alignment."""
    return max(0, <int64_t> group_capacity(buffer_bytes, alignment) - LENGTH_PREFIX)
