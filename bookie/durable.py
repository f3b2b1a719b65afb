"""Durable creation of directories and small files, which are accessible to their owner only.

Each file and directory is created with an explicit mode, so a permissive umask cannot widen access.
"""

import itertools
import os
from pathlib import Path

__all__ = ["make_directories", "PRIVATE_DIRECTORY", "PRIVATE_FILE", "replace_file", "sync_directory", "write_file"]

PRIVATE_FILE = 0o600
PRIVATE_DIRECTORY = 0o700
READABLE_FILE = 0o666
"""The mode of files that others may read; the umask reduces it further."""


def make_directories(path: Path) -> None:
    """Create the directory and its missing parents durably, accessible to the owner only. Existing ones keep their
    mode.

    An earlier attempt may have failed, or been killed, after it created the last of those that exist and before that
    was durable. Where this process may have created it, it is made durable now.
    """
    steps = [path, *path.parents]
    missing = list(itertools.takewhile(lambda step: not step.exists(), steps))
    last = steps[len(missing)]
    if os.access(last.parent, os.R_OK | os.W_OK):
        sync_directory(last.parent)
    for step in reversed(missing):
        step.mkdir(mode=PRIVATE_DIRECTORY, exist_ok=True)
        sync_directory(step.parent)
    path.mkdir(mode=PRIVATE_DIRECTORY, exist_ok=True)  # NotADirectoryError, FileExistsError if it is something else


def sync_directory(path: Path) -> None:
    """Make creations, renames and removals in `path` durable. After an OSError the contents on disk are unknown."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def write_file(path: Path, content: bytes) -> None:
    """Write a file like `replace_file`, but create its directory, and let the umask decide who may read it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, content, mode=READABLE_FILE)


def replace_file(path: Path, content: bytes, *, mode: int = PRIVATE_FILE) -> None:
    """Write a file atomically and durably: afterwards it has the new content or, after an OSError, what was there
    before.

    No directory is created, so that none appears in the place of a disk that is not mounted.
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
