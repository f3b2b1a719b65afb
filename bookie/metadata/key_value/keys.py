"""Versioned keys with sessions and notifications of changes: the interface of the embedded store, locally and over
gRPC.

Keys are text, in ascending order of their UTF-8 bytes. A key that was put under a session is deleted with the
session.
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
    """A stored value.

    `version` rises with each change: from 0 by one in our own store, while in etcd it is the revision of the change.
    `created_ms` is in milliseconds since 1970, and 0 where the store does not record it. `session` is 0 for a permanent
    key.
    """

    value: bytes
    version: int
    created_ms: int
    session: int = NO_SESSION


class KeyExists(MetadataStoreError):
    """A key that must not exist does exist."""

    retriable = False


class KeyAbsent(MetadataStoreError):
    """A key that must exist does not exist."""

    retriable = False


class VersionConflict(MetadataStoreError):
    """The key has another version than the expected one."""

    retriable = False


class SessionExpired(MetadataStoreError):
    """The session is unknown: it ended, or the store was restarted. The next call uses a new one."""


class StoreFull(MetadataStoreError):
    """The store has no room for the value, or no free watch stream."""

    retriable = False


class KeyValues(Protocol):
    """A store, or a connection to one. Any thread may call; calls block until the store has answered."""

    def start(self) -> None: ...
    def stop(self) -> None: ...
    def hurry(self, patience_s: float) -> None:
        """Let calls wait for this long at most, as the process is about to end: `metadata.patience` says more."""

    def get(self, key: str) -> Item | None: ...

    def put(self, key: str, value: bytes, expected: int | None, session: int = NO_SESSION) -> Item:
        """Replace version `expected` of a key, or create the key if that is None; return what is stored now.

        Raises KeyExists, KeyAbsent, VersionConflict, SessionExpired or StoreFull.
        """
        ...

    def delete(self, key: str, expected: int | None = None) -> None:
        """Delete a key; `expected` None means any version. Raises KeyAbsent or VersionConflict."""
        ...

    def keys(self, prefix: str, after: str = "", limit: int = 1000) -> list[str]:
        """Return one page of the keys that start with `prefix`, ascending, beginning after the key `after`."""
        ...

    def increment(self, key: str) -> int:
        """Increment a counter that starts at 0, and return its value before."""
        ...

    def watch(self, touched: Callable[[str], None]) -> Callable[[], None]:
        """Call `touched(key)` after each change; an empty key means that anything may have changed.

        `touched` runs on a thread of the store and must not block. Returns a function that ends the watch.
        """
        ...

    def session(self) -> int:
        """Return the present session of this process with the store."""
        ...

    def on_session_loss(self, listener: Callable[[], None]) -> None:
        """Call `listener`, which must not block, whenever a session ended and was replaced by a new one."""
        ...

    def on_interruption(self, listener: Callable[[], None]) -> None:
        """Call `listener`, which must not block, after the store was restarted, stalled, or could not be reached."""
        ...


class Watchers:
    """The functions that are called after changes. Any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._all: list[Callable[[str], None]] = []

    def add(self, touched: Callable[[str], None]) -> Callable[[], None]:
        """Call `touched` from now on. Returns a function that ends that, and may be called twice."""
        with self._lock:
            self._all.append(touched)

        def end() -> None:
            with self._lock:
                if touched in self._all:
                    self._all.remove(touched)

        return end

    def tell(self, keys: Iterable[str]) -> None:
        """Call all functions with each key, on this thread."""
        with self._lock:
            everybody = list(self._all)
        for touched in everybody:
            for key in keys:
                touched(key)


def pages(store: KeyValues, prefix: str, limit: int = 1000) -> Iterator[list[str]]:
    """Yield all keys that start with `prefix`, ascending, in pages of at most `limit`."""
    after = ""
    while page := store.keys(prefix, after, limit):
        yield page
        after = page[-1]
