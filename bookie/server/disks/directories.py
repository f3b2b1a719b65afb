"""All directories of a bookie: created, checked, and locked against a second process.

Main thread, at start and stop. The lock is a `flock` on the directory itself, so that taking it changes nothing on
disk and the end of the process releases it.
"""

import errno
import fcntl
import logging
import os
import stat
from collections.abc import Iterable
from pathlib import Path

from bookie.durable import PRIVATE_DIRECTORY, sync_directory
from bookie.errors import StartRefused

__all__ = ["Directories"]

HOLDS = ("current", "data.mdb")
"""Files that a bookie, or the metadata store, creates in its directories."""

log = logging.getLogger(__name__)


class Directories:
    """Locks on all directories of one bookie. `acquire` may create directories, and `abandon` removes these."""

    def __init__(self, paths: Iterable[Path]) -> None:
        self._paths = tuple(dict.fromkeys(paths))
        self._created: list[Path] = []
        self._locks: dict[tuple[int, int], int] = {}

    def check(self) -> None:
        """Check that all can be used or created, without changing anything or asking who holds them.

        Raises StartRefused.
        """
        for path in self._paths:
            _check(path)

    def acquire(self) -> None:
        """Create missing directories and lock all. Raises StartRefused, after undoing what was done."""
        self.check()
        try:
            for path in self._paths:
                self._make(path)
                self._lock(path)
                _tell_open(path)
        except StartRefused:
            self.abandon()
            raise

    def empty_if_made(self, path: Path) -> None:
        """Remove the files in a directory that `acquire` created, unless `keep` was called since."""
        if path in self._created:
            for file in path.iterdir():
                file.unlink()

    def abandon(self) -> None:
        """Unlock, and remove the directories that `acquire` created if they are still empty. Idempotent."""
        for path in reversed(self._created):
            try:
                path.rmdir()
            except OSError as error:
                if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                    raise
        self._created.clear()
        while self._locks:
            os.close(self._locks.popitem()[1])

    def keep(self) -> None:
        """Keep the created directories, which are in use now: `abandon` then only unlocks."""
        self._created.clear()

    def _make(self, path: Path) -> None:
        missing = [step for step in (path, *path.parents) if not step.exists()]
        for step in reversed(missing):
            try:
                step.mkdir(PRIVATE_DIRECTORY)
            except FileExistsError:
                continue
            except OSError as error:
                raise _refused(path, "cannot be created", error) from None
            self._created.append(step)
            sync_directory(step.parent)

    def _lock(self, path: Path) -> None:
        try:
            fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            raise _refused(path, "cannot be opened as a directory", error) from None
        status = os.fstat(fd)
        if (status.st_dev, status.st_ino) in self._locks:  # one directory, several roles
            os.close(fd)
            return
        self._locks[status.st_dev, status.st_ino] = fd
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StartRefused(
                f"{path}: another bookie process uses this directory; stop that process, or use another directory"
            ) from None


def _check(path: Path) -> None:
    there = next(step for step in (path, *path.parents) if os.path.exists(step))  # noqa: PTH110 - a Path may raise
    if not there.is_dir():
        what = "cannot be opened as a directory" if there == path else "cannot be created"
        raise _refused(path, what, OSError(errno.ENOTDIR, os.strerror(errno.ENOTDIR)))
    if not os.access(there, os.W_OK | os.X_OK) or os.statvfs(there).f_flag & os.ST_RDONLY:
        told = "it" if there == path else f"it cannot be created, because {there}"
        raise StartRefused(f"{path}: {told} is not writable; correct the owner, mode or mount of the directory")


def _tell_open(path: Path) -> None:
    """Log one line if everyone on this machine can access the files, because an earlier version or Java created
    them.

    Their permissions are not changed, because the operator may want them.
    """
    found = [path / name for name in HOLDS if (path / name).exists() and _mode(path / name) & stat.S_IRWXO]
    if found and all(_mode(step) & stat.S_IXOTH for step in (path.resolve(), *path.resolve().parents)):
        facts = {"directory": path, "mode": f"{_mode(found[0]):o}", "remedy": f"chmod -R go= {path}"}
        log.warning("other users of this machine can access a directory of the bookie", extra=facts)


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def _refused(path: Path, what: str, error: OSError) -> StartRefused:
    return StartRefused(f"{path}: {what} ({error.strerror}); correct the path or the permissions above it")
