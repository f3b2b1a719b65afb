"""The lock that a running bookie holds on its directories, for tools that write to them."""

import fcntl
import os
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from bookie.errors import ToolRefused

__all__ = ["locked"]


@contextmanager
def locked(directories: Iterable[Path]) -> Iterator[None]:
    """Lock `directories` (as configured, without `/current`) against bookies and other tools.

    Raises ToolRefused if one is missing or in use. A directory may be named twice.
    """
    with ExitStack() as held:
        seen: set[tuple[int, int]] = set()
        for path in directories:
            try:
                fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            except OSError as error:
                raise ToolRefused(
                    f"{path} cannot be opened as a directory: {error.strerror}; correct the path"
                ) from None
            held.callback(os.close, fd)
            status = os.fstat(fd)
            if (status.st_dev, status.st_ino) in seen:
                continue
            seen.add((status.st_dev, status.st_ino))
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise ToolRefused(f"{path} is in use by a bookie or another tool; stop that first") from None
        yield
