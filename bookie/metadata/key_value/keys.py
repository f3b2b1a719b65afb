"""Versioned keys with sessions and changes: what the embedded store offers, here and over gRPC.

Keys are text, in ascending order of their UTF-8 bytes. A key put under a session vanishes with it.
"""

import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

from bookie.errors import MetadataStoreError

NO_SESSION = 0
KEY_BYTES_MAX = 480
VALUE_BYTES_MAX = 1 << 20


@dataclass(frozen=True, slots=True)
class Item:
    """A stored value. `version` is 0 when created and one more with each change; `session` is 0 for one that stays."""

    value: bytes
    version: int
    created_ms: int
    session: int = NO_SESSION


class KeyExists(MetadataStoreError):
    """A key that must not exist does."""

    retriable = False


class KeyAbsent(MetadataStoreError):
    """A key that must exist does not."""

    retriable = False


class VersionConflict(MetadataStoreError):
    """The key has another version than the one named."""

    retriable = False


class SessionExpired(MetadataStoreError):
    """The session is unknown: it ended, or the store was restarted. The next call is under a new one."""


class StoreFull(MetadataStoreError):
    """The store has no room for the value, or no free watch stream."""

    retriable = False


class KeyValues(Protocol):
    """A store, or the way to one. Any thread; calls block until the store answered."""

    def start(self) -> None: ...
    def stop(self) -> None: ...

    def get(self, key: str) -> Item | None: ...

    def put(self, key: str, value: bytes, expected: int | None, session: int = NO_SESSION) -> Item:
        """Replace version `expected`, or create if None; what is now stored.

        Raises KeyExists, KeyAbsent, VersionConflict, SessionExpired, StoreFull.
        """
        ...

    def delete(self, key: str, expected: int | None = None) -> None:
        """None means any version. Raises KeyAbsent, VersionConflict."""
        ...

    def keys(self, prefix: str, after: str = "", limit: int = 1000) -> list[str]:
        """One page of the keys that start with `prefix`, ascending, behind the key `after`."""
        ...

    def increment(self, key: str) -> int:
        """Add one to a counter that starts at 0; the value before."""
        ...

    def watch(self, touched: Callable[[str], None]) -> Callable[[], None]:
        """Call `touched(key)` after each change; an empty key means that anything may have changed.

        `touched` runs on a thread of the store and must not block. Returns what ends the watch.
        """
        ...

    def session(self) -> int:
        """The present session of this process with the store."""
        ...

    def on_session_loss(self, listener: Callable[[], None]) -> None:
        """Call `listener`, which must not block, whenever a session ended and another one took its place."""
        ...


class Watchers:
    """Who asked a store to be told of changes. Any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._all: list[Callable[[str], None]] = []

    def add(self, touched: Callable[[str], None]) -> Callable[[], None]:
        """Tell `touched` from now on; returns what ends that, and may be called twice."""
        with self._lock:
            self._all.append(touched)

        def end() -> None:
            with self._lock:
                if touched in self._all:
                    self._all.remove(touched)

        return end

    def tell(self, keys: Iterable[str]) -> None:
        """Call everybody with each key, on this thread."""
        with self._lock:
            everybody = list(self._all)
        for touched in everybody:
            for key in keys:
                touched(key)


def pages(store: KeyValues, prefix: str) -> Iterator[list[str]]:
    """All keys that start with `prefix`, ascending, a page at a time."""
    after = ""
    while page := store.keys(prefix, after):
        yield page
        after = page[-1]
