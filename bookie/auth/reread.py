"""The contents of a file of an authentication provider, read again when the file has changed."""

import logging
from collections.abc import Callable
from typing import Generic, TypeVar

from bookie.changed_files import ChangedFiles
from bookie.errors import ConfigurationError

__all__ = ["Reread"]

T = TypeVar("T")

log = logging.getLogger(__name__)


class Reread(Generic[T]):
    """A parsed file. `now` is the result of the last successful `read`; the constructor calls `read` first.

    The constructor raises ConfigurationError. One thread calls `refresh`.
    """

    def __init__(self, path: str, read: Callable[[], T]) -> None:
        self._path = path
        self._file = ChangedFiles(path)  # before the file is read, so that a change meanwhile is noticed
        self._read = read
        self.now = read()

    def refresh(self) -> bool:
        """Read a changed file, and return whether `now` was replaced. A file that cannot be used is only logged."""
        if not self._file.changed():
            return False
        try:
            self.now = self._read()
        except ConfigurationError as error:
            log.error("an authentication file has changed but cannot be used; its old contents stay valid: %s", error)
            return False
        log.info("an authentication file has changed and was reloaded", extra={"file": self._path})
        return True
