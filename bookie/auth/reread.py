"""What stands in a file of an authentication provider, and again when the file has changed."""

import logging
from collections.abc import Callable
from typing import Generic, TypeVar

from bookie.changed_files import ChangedFiles
from bookie.errors import ConfigurationError

__all__ = ["Reread"]

T = TypeVar("T")

log = logging.getLogger(__name__)


class Reread(Generic[T]):
    """`now` is what `read` made of the file last; the constructor reads it, too. ConfigurationError.

    One thread calls `refresh`.
    """

    def __init__(self, path: str, read: Callable[[], T]) -> None:
        self._path = path
        self._file = ChangedFiles(path)  # before it is read: a change meanwhile is seen
        self._read = read
        self.now = read()

    def refresh(self) -> bool:
        """True when there is something else in `now`; a file that cannot be used is logged, and changes nothing."""
        if not self._file.changed():
            return False
        try:
            self.now = self._read()
        except ConfigurationError as error:
            log.error("a file of the authentication has changed but cannot be used, what it held stays: %s", error)
            return False
        log.info("a file of the authentication has changed and is used", extra={"file": self._path})
        return True
