"""What makes names in a directory, and small files, last."""

import os
from pathlib import Path

__all__ = ["replace_file", "sync_directory", "write_file"]


def sync_directory(path: Path) -> None:
    """Make creations, renames and removals in `path` durable. OSError: what is there now is unknown."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def write_file(path: Path, content: bytes) -> None:
    """The same as `replace_file`, in a directory that is made where there is none. OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, content)


def replace_file(path: Path, content: bytes) -> None:
    """The whole file or what was there before, durably; nothing else is left. OSError.

    It makes no directory: where a disk is not mounted, none must appear in its place.
    """
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
