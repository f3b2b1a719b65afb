"""The free space of the bookies, for threads; the counterpart of `bookie.client.placement.bookie_info`. Any thread."""

import contextlib
from collections.abc import Callable, Mapping

from bookie.client.event_loop.thread import LoopThread
from bookie.client.placement.bookie_info import BookieInfoReader
from bookie.client.wire.bookie_space import BookieInfo
from bookie.errors import BookKeeperError, ClientClosed
from bookie.metadata.driver import Subscription

__all__ = ["BookieInfos"]


class BookieInfos:
    """The disk space of the bookies. Get it from `BookKeeper.bookie_info`.

    Bookies are polled every `getBookieInfoIntervalSeconds` while somebody subscribes, or while placement is weighted.
    All calls raise ClientClosed if the client is closed.
    """

    def __init__(self, thread: LoopThread, reader: BookieInfoReader) -> None:
        self._thread = thread
        self._reader = reader

    @property
    def known(self) -> dict[str, BookieInfo]:
        """The total and free bytes of each bookie, by bookie id, as last reported."""
        return self._thread.run(self._known())

    @property
    def errors(self) -> dict[str, BookKeeperError]:
        """For each bookie whose space is unknown, by bookie id: the error of the last request."""
        return self._thread.run(self._errors())

    def subscribe(self, listener: Callable[[Mapping[str, BookieInfo]], None]) -> Subscription:
        """Call a listener with the known values after each poll, and at once if any are known.

        Args:
            listener: Called with total and free bytes by bookie id. It runs on the client's own thread: it must be
                quick, and calls of this client that wait are refused there with IllegalOperation.

        Returns:
            The subscription; close it to end the calls.

        Raises:
            ClientClosed: The client is closed.
        """
        return _Unsubscribe(self._thread, self._thread.run(self._subscribe(listener)))

    def refresh(self) -> None:
        """Poll all bookies as soon as possible, without waiting for their answers.

        Raises:
            ClientClosed: The client is closed.
        """
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
    """The subscription that `subscribe` returns."""

    def __init__(self, thread: LoopThread, subscription: Subscription) -> None:
        self._thread = thread
        self._subscription = subscription

    def close(self) -> None:
        """End the calls of the listener, once one that is running has returned. It may be called twice, and by the
        listener.
        """
        with contextlib.suppress(ClientClosed):
            self._thread.submit(self._close())

    async def _close(self) -> None:
        self._subscription.close()
