"""The threads that flush the ledger directories, one for each, from the replay to the last checkpoint."""

import threading
from collections.abc import Iterator
from functools import partial

from bookie._fast.store.flushers import Flushers
from bookie._fast.store.storage import StorageEngine
from bookie.storage.essential_threads import EssentialThreads

__all__ = ["FlushThreads"]


class FlushThreads:
    """Call `start`, and `stop` when no flush will be begun any more; `stop` is idempotent."""

    def __init__(self) -> None:
        self._flushers: Flushers | None = None
        self._threads = EssentialThreads()

    def __iter__(self) -> Iterator[threading.Thread]:
        return iter(self._threads)

    def start(self, stores: StorageEngine, count: int) -> None:
        """Start a thread for each of `count` directories."""
        self._flushers = Flushers(stores)
        for index in range(count):
            self._threads.spawn(f"flush-{index}", partial(self._flushers.run, index))

    def stop(self) -> None:
        """Wait until the flushes that have begun are done, and end the threads."""
        if self._flushers is not None:
            self._flushers.stop()
        self._threads.join()
