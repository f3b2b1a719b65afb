"""The state of a directory's disk: assessed by the server, respected by garbage collection."""

from enum import IntEnum

__all__ = ["DiskLevel"]


class DiskLevel(IntEnum):
    """Ordered by severity."""

    OK = 0
    WARN = 1
    """No major compaction, because its large copies need space."""
    FULL = 2
    """No minor compaction either, but deleted ledgers and dead logs are removed."""
    BAD = 3
    """The disk cannot be queried or is read-only: no garbage collection at all."""
