"""The bookie's directories as a whole: made, checked, locked against a second process.

Main thread, at start and stop. The lock is a `flock` on the directory itself, so that taking it changes nothing on
disk and the death of the process ends it.
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
"""What a bookie, or the metadata store, makes in a directory of its own."""

log = logging.getLogger(__name__)


class Directories:
    """Locks on all directories of one bookie. `acquire` may create directories, `abandon` takes that back."""

    def __init__(self, paths: Iterable[Path]) -> None:
        self._paths = tuple(dict.fromkeys(paths))
        self._created: list[Path] = []
        self._locks: dict[tuple[int, int], int] = {}

    def acquire(self) -> None:
        """Make what is missing and lock all. Raises StartRefused, after undoing what was done."""
        try:
            for path in self._paths:
                self._make(path)
                self._lock(path)
                _tell_open(path)
        except StartRefused:
            self.abandon()
            raise

    def empty_if_made(self, path: Path) -> None:
        """Remove the files of a directory that `acquire` made, unless `keep` was called since."""
        if path in self._created:
            for file in path.iterdir():
                file.unlink()

    def abandon(self) -> None:
        """Unlock, and remove the directories that `acquire` made, as far as they are still empty. Idempotent."""
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
        """What was made is in use now: `abandon` only unlocks."""
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
        if not os.access(path, os.W_OK | os.X_OK) or os.fstatvfs(fd).f_flag & os.ST_RDONLY:
            raise StartRefused(f"{path}: not writable; correct owner, mode or mount of the directory")
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StartRefused(f"{path}: another bookie process uses this directory; stop it, or use another") from None


def _tell_open(path: Path) -> None:
    """One line where everybody on this machine may look into what is there: an earlier version made it, or Java.

    It is left as it is, for the operator may mean it so.
    """
    found = [path / name for name in HOLDS if (path / name).exists() and _mode(path / name) & stat.S_IRWXO]
    if found and all(_mode(step) & stat.S_IXOTH for step in (path.resolve(), *path.resolve().parents)):
        facts = {"directory": path, "mode": f"{_mode(found[0]):o}", "remedy": f"chmod -R go= {path}"}
        log.warning("others on this machine may use what is in a directory of the bookie", extra=facts)


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def _refused(path: Path, what: str, error: OSError) -> StartRefused:
    return StartRefused(f"{path}: {what} ({error.strerror}); correct the path or the permissions above it")
