"""What makes names in a directory, and small files, last; and who may use what a bookie makes: nobody else.

Modes are given with each file and directory, so that no umask makes them wider.
"""

import os
from pathlib import Path

__all__ = ["make_directories", "PRIVATE_DIRECTORY", "PRIVATE_FILE", "replace_file", "sync_directory", "write_file"]

PRIVATE_FILE = 0o600
PRIVATE_DIRECTORY = 0o700
READABLE_FILE = 0o666
"""As far as the umask lets it be."""


def make_directories(path: Path) -> None:
    """The directory, and those above it, where there are none: entered by nobody else. What is there stays as it is."""
    for step in reversed([step for step in (path, *path.parents) if not step.exists()]):
        step.mkdir(mode=PRIVATE_DIRECTORY, exist_ok=True)
    path.mkdir(mode=PRIVATE_DIRECTORY, exist_ok=True)  # NotADirectoryError, FileExistsError where it is something else


def sync_directory(path: Path) -> None:
    """Make creations, renames and removals in `path` durable. OSError: what is there now is unknown."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def write_file(path: Path, content: bytes) -> None:
    """The same as `replace_file`, in a directory that is made where there is none: results, for whom the umask says."""
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, content, mode=READABLE_FILE)


def replace_file(path: Path, content: bytes, *, mode: int = PRIVATE_FILE) -> None:
    """The whole file or what was there before, durably; nothing else is left. OSError.

    It makes no directory: where a disk is not mounted, none must appear in its place.
    """
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, mode), "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)
    finally:
        fresh.unlink(missing_ok=True)
    sync_directory(path.parent)
