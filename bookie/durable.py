"""What makes names in a directory, and small files, last."""

import os
from pathlib import Path

__all__ = ["sync_directory", "write_file"]


def sync_directory(path: Path) -> None:
    """Make creations, renames and removals in `path` durable. OSError: what is there now is unknown."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def write_file(path: Path, content: bytes) -> None:
    """The whole file or none of it, durably. OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with fresh.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)
    finally:
        fresh.unlink(missing_ok=True)
    sync_directory(path.parent)
