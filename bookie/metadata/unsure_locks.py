"""Replication locks that may be ours although no caller holds them. Any thread.

The store was unreachable when such a lock was to be made or released, and came back before the session ended. Left
alone, the lock would exist as long as this process, and nobody could copy its ledger.
"""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from bookie.errors import MetadataStoreError

__all__ = ["UnsureLocks"]


class UnsureLocks:
    """The ledgers of these locks. `release` releases one if it is ours, and raises MetadataStoreError."""

    def __init__(self, release: Callable[[int], None]) -> None:
        self._release = release
        self._taking = threading.Lock()  # held while a lock is made, and while those in `_ledgers` are released
        self._ledgers: set[int] = set()

    @contextmanager
    def taking(self, ledger: int, *, refusals: tuple[type[MetadataStoreError], ...] = ()) -> Iterator[None]:
        """Make a lock in this context. After MetadataStoreError other than `refusals` it may exist or not."""
        with self._taking:
            try:
                yield
            except refusals:
                raise
            except MetadataStoreError:
                self._ledgers.add(ledger)
                raise
            self._ledgers.discard(ledger)

    @contextmanager
    def releasing(self, ledger: int) -> Iterator[None]:
        """Release a lock in this context. After MetadataStoreError it may still exist."""
        try:
            yield
        except MetadataStoreError:
            self._ledgers.add(ledger)
            raise

    @contextmanager
    def holding(self, ledger: int, take: Callable[[int, str], bool]) -> Iterator[bool]:
        """Hold a lock of this host in this context, if `take(ledger, holder)` gets it; yield whether it did."""
        self.release_all()
        if not take(ledger, socket.gethostname()):
            yield False
            return
        try:
            yield True
        finally:
            self._release(ledger)

    def release_all(self) -> None:
        """Release those of them that are ours. What fails is tried again the next time."""
        with self._taking:
            for ledger in tuple(self._ledgers):
                self._ledgers.discard(ledger)
                self._release(ledger)
