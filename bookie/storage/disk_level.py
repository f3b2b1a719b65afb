"""How the disk of a directory stands: judged by the server, minded by garbage collection."""

from enum import IntEnum

__all__ = ["DiskLevel"]


class DiskLevel(IntEnum):
    """The worse the higher."""

    OK = 0
    WARN = 1
    """No major compaction: no room for its large copies."""
    FULL = 2
    """No minor one either, but ledgers and dead logs go."""
    BAD = 3
    """Cannot be asked, or is read-only: nothing at all."""
