"""What makes names in a directory last."""

import os
from pathlib import Path

__all__ = ["sync_directory"]


def sync_directory(path: Path) -> None:
    """Make creations, renames and removals in `path` durable. OSError: what is there now is unknown."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
