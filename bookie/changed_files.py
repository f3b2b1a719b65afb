"""Detection of changes in files such as certificates, keys and tokens, which are read again then."""

from collections.abc import Iterable
from pathlib import Path

__all__ = ["ChangedFiles"]


class ChangedFiles:
    """Some files, and their state at the last check; empty paths are ignored. The state includes the mode, so that a
    secret which was refused for its permissions is read again when they are corrected.

    One thread at a time.
    """

    def __init__(self, *paths: str) -> None:
        self._paths = tuple(path for path in paths if path)
        self._seen = list(_stamps(self._paths))

    def changed(self) -> bool:
        """Return whether a file was written, replaced, removed or created since the last call or the construction."""
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
