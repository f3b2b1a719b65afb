"""Poll the disk space and the load of bookies: all at intervals, new and failed ones sooner. asyncio, one event loop.

Anyone may subscribe; the placement policy is informed only if placement is weighted. There is one poll at a time,
with a limited number of requests in flight.
"""

import asyncio
import contextlib
import logging
import math
from collections.abc import Callable, Collection, Mapping

from bookie.client.config import ClientConfig
from bookie.client.contracts import Bookies, Placement
from bookie.client.placement.load import rated
from bookie.client.wire.bookie_space import BookieInfo
from bookie.errors import BookKeeperError, ClientClosed, RequestTimeout
from bookie.metadata.driver import Subscription

__all__ = ["BookieInfoReader", "free_bytes", "scan"]

QUESTIONS_MAX = 64

log = logging.getLogger(__name__)

Listener = Callable[[Mapping[str, BookieInfo]], None]


async def scan(bookies: Bookies, members: Collection[str], timeout_s: float) -> dict[str, BookieInfo | BookKeeperError]:
    """Ask bookies for their disk space, and return each one's answer or error. Takes at most `timeout_s` seconds."""
    answers: dict[str, BookieInfo | BookKeeperError] = {}
    gate = asyncio.Semaphore(QUESTIONS_MAX)
    until = asyncio.get_running_loop().time() + timeout_s

    async def ask(bookie: str) -> None:
        try:
            async with asyncio.timeout_at(until), gate:
                answers[bookie] = await bookies.bookie_info(bookie)
        except BookKeeperError as error:
            answers[bookie] = error
        except TimeoutError:
            answers[bookie] = RequestTimeout(f"bookie {bookie}: no answer to GET_BOOKIE_INFO in {timeout_s:g} s")

    async with asyncio.TaskGroup() as tasks:
        for bookie in sorted(members):
            tasks.create_task(ask(bookie))
    return answers


class BookieInfoReader:
    """Polls the disk space of bookies while it is started and somebody uses it: the weighted policy, or a subscriber.

    Attributes:
        known: Space and load by bookie id, as last reported.
        errors: For each bookie whose space is unknown, by bookie id: the error of the last request.
    """

    def __init__(self, config: ClientConfig, bookies: Bookies, placement: Placement | None = None) -> None:
        self.known: dict[str, BookieInfo] = {}
        self.errors: dict[str, BookKeeperError] = {}
        """The error of the last request, for each bookie whose space is unknown."""
        self._config = config
        self._bookies = bookies
        self._listeners: list[Listener] = []
        if placement is not None and config.weighted_placement:
            self._listeners.append(placement.info_changed)
        self._members: frozenset[str] = frozenset()
        self._full_at = -math.inf
        self._partial_at = math.inf
        self._wake = asyncio.Event()
        self._started = False
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Poll from now on, as soon as somebody subscribes."""
        self._started = True
        if self._listeners and self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run())

    async def stop(self) -> None:
        """Stop polling. Further calls do nothing."""
        self._started = False
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    def subscribe(self, listener: Listener) -> Subscription:
        """Call a listener with the known values after each poll, and at once if any are known.

        Args:
            listener: Called on the event loop with space and load by bookie id.

        Returns:
            The subscription; close it to end the calls.
        """
        self._listeners.append(listener)
        if self.known:
            listener(dict(self.known))
        self._wake.set()
        if self._started:
            self.start()
        return _Unsubscribe(self._listeners, listener)

    def refresh(self) -> None:
        """Poll all bookies as soon as possible, without waiting for their answers."""
        self._full_at = -math.inf
        self._wake.set()

    def members_changed(self, members: frozenset[str]) -> None:
        """Take over the writable bookies: forget those that left, and poll the new ones."""
        if members != self._members:
            self._members = members
            for gone in self.known.keys() - members:
                del self.known[gone]
            for gone in self.errors.keys() - members:
                del self.errors[gone]
            self._partial_at = -math.inf
            self._wake.set()

    async def _run(self) -> None:
        now = asyncio.get_running_loop().time
        while True:
            if not self._listeners:
                due = math.inf
            elif (due := min(self._full_at, self._partial_at)) <= now():
                await (self._full() if self._full_at <= now() else self._partial())
                continue
            self._wake.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(None if due == math.inf else due - now()):
                    await self._wake.wait()

    async def _full(self) -> None:
        self._full_at = asyncio.get_running_loop().time() + self._config.bookie_info_interval_s
        await self._ask(self._members)

    async def _partial(self) -> None:
        await self._ask(self._members - self.known.keys())

    async def _ask(self, members: Collection[str]) -> None:
        self._partial_at = math.inf
        answers = await scan(self._bookies, members, self._config.bookie_info_timeout_s)
        for bookie, answer in answers.items():
            if bookie not in self._members or isinstance(answer, ClientClosed):
                continue
            if isinstance(answer, BookieInfo):
                self.known[bookie] = rated(answer, self.known.get(bookie))
                self.errors.pop(bookie, None)
            else:
                log.warning("disk space of a bookie is unknown bookieId=%s error=%s", bookie, answer)
                self.known.pop(bookie, None)
                self.errors[bookie] = answer
        if self.errors:
            again = asyncio.get_running_loop().time() + self._config.bookie_info_retry_s
            self._partial_at = min(self._partial_at, again)
        for listener in tuple(self._listeners):
            try:
                listener(dict(self.known))
            except Exception:  # one failing listener must not end the others or the polling
                log.exception("a listener for the disk space of bookies failed listener=%r", listener)


class _Unsubscribe:
    """The subscription that `subscribe` returns."""

    def __init__(self, listeners: list[Listener], listener: Listener) -> None:
        self._listeners = listeners
        self._listener = listener

    def close(self) -> None:
        """End the calls of the listener. Further calls do nothing."""
        self._listeners[:] = [one for one in self._listeners if one is not self._listener]


def free_bytes(known: Mapping[str, BookieInfo]) -> dict[str, int]:
    """Return the free bytes by bookie id."""
    return {bookie: info.free for bookie, info in known.items()}
