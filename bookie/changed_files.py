"""Files that are read again when they have changed: certificates, keys, tokens."""

from collections.abc import Iterable
from pathlib import Path

__all__ = ["ChangedFiles"]


class ChangedFiles:
    """Some files, and what they were when they were looked at last. Paths that are empty count for nothing. Who may use
    a file is part of what it is: a secret that was refused for that is looked at again once it is right.

    One thread at a time.
    """

    def __init__(self, *paths: str) -> None:
        self._paths = tuple(path for path in paths if path)
        self._seen = list(_stamps(self._paths))

    def changed(self) -> bool:
        """Whether one was written, replaced, removed or put there since the last call; at first, since the start."""
        stamps = list(_stamps(self._paths))
        changed, self._seen = stamps != self._seen, stamps
        return changed


def _stamps(paths: Iterable[str]) -> Iterable[tuple[int, int, int, int] | None]:
    for path in paths:
        try:
            found = Path(path).stat()
        except OSError:
            yield None
        else:
            yield found.st_ino, found.st_size, found.st_mtime_ns, found.st_mode
