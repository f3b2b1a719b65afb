"""Track which bookies are registered, as long as a client lives. Event loop only."""

import asyncio
from collections.abc import Callable

from bookie.client.contracts import Metadata
from bookie.metadata.driver import Subscription

__all__ = ["Members"]


class Members:
    """Calls `listener` with the writable and the read-only bookies at `start` and at every change, until `close`."""

    def __init__(self, store: Metadata, listener: Callable[[frozenset[str], frozenset[str]], None]) -> None:
        self._store = store
        self._listener = listener
        self._writable: frozenset[str] = frozenset()
        self._read_only: frozenset[str] = frozenset()
        self._watches: list[Subscription] = []

    async def start(self) -> None:
        """Read the registered bookies, call the listener, and start to watch them. Raises MetadataStoreError."""
        self._writable, self._read_only = await asyncio.gather(
            self._store.bookies(read_only=False), self._store.bookies(read_only=True)
        )
        self._listener(self._writable, self._read_only)
        self._watches.append(self._store.watch_bookies(self._writable_changed, read_only=False))
        self._watches.append(self._store.watch_bookies(self._read_only_changed, read_only=True))

    def close(self) -> None:
        """End the watches. Further calls do nothing."""
        for watch in self._watches:
            watch.close()
        self._watches.clear()

    def _writable_changed(self, bookies: frozenset[str]) -> None:
        self._changed(bookies, self._read_only)

    def _read_only_changed(self, bookies: frozenset[str]) -> None:
        self._changed(self._writable, bookies)

    def _changed(self, writable: frozenset[str], read_only: frozenset[str]) -> None:
        if (writable, read_only) != (self._writable, self._read_only):
            self._writable, self._read_only = writable, read_only
            self._listener(writable, read_only)
