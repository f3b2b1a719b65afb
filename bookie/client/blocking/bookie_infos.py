"""Disk space of the bookies for threads: the twin of `bookie.client.placement.bookie_info`. Any thread."""

import contextlib
from collections.abc import Callable, Mapping

from bookie.client.event_loop.thread import LoopThread
from bookie.client.placement.bookie_info import BookieInfoReader
from bookie.client.wire.bookie_space import BookieInfo
from bookie.errors import BookKeeperError, ClientClosed
from bookie.metadata.driver import Subscription

__all__ = ["BookieInfos"]


class BookieInfos:
    """Made by `BookKeeper.bookie_info`. Bookies are asked from time to time while somebody listens."""

    def __init__(self, thread: LoopThread, reader: BookieInfoReader) -> None:
        self._thread = thread
        self._reader = reader

    @property
    def known(self) -> dict[str, BookieInfo]:
        """Total and free bytes, by bookie, as they were told last. ClientClosed."""
        return self._thread.run(self._known())

    @property
    def errors(self) -> dict[str, BookKeeperError]:
        """Of bookies of which nothing is known: why. ClientClosed."""
        return self._thread.run(self._errors())

    def subscribe(self, listener: Callable[[Mapping[str, BookieInfo]], None]) -> Subscription:
        """`listener` is told what is known after each scan, and at once if something is. ClientClosed.

        It is called on the client's own thread: it must be quick, and calls of this client that wait are refused there.
        """
        return _Unsubscribe(self._thread, self._thread.run(self._subscribe(listener)))

    def refresh(self) -> None:
        """Have all asked as soon as may be, without waiting for the answers. ClientClosed."""
        self._thread.run(self._refresh())

    async def _known(self) -> dict[str, BookieInfo]:
        return dict(self._reader.known)

    async def _errors(self) -> dict[str, BookKeeperError]:
        return dict(self._reader.errors)

    async def _subscribe(self, listener: Callable[[Mapping[str, BookieInfo]], None]) -> Subscription:
        return self._reader.subscribe(listener)

    async def _refresh(self) -> None:
        self._reader.refresh()


class _Unsubscribe:
    """What `subscribe` returns."""

    def __init__(self, thread: LoopThread, subscription: Subscription) -> None:
        self._thread = thread
        self._subscription = subscription

    def close(self) -> None:
        """Not told any more, once a call that is under way is over. May be called twice, and by the listener."""
        with contextlib.suppress(ClientClosed):
            self._thread.submit(self._close())

    async def _close(self) -> None:
        self._subscription.close()
