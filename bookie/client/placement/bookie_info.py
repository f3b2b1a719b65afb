"""Asks bookies for their disk space: all from time to time, newcomers and failed ones sooner. asyncio, one event loop.

Whoever wants to know subscribes; the placement policy is told only where weights are on. Bounded: one scan at a time,
and so many questions under way in it.
"""

import asyncio
import contextlib
import logging
import math
from collections.abc import Callable, Collection, Mapping

from bookie.client.config import ClientConfig
from bookie.client.contracts import Bookies, Placement
from bookie.client.wire.bookie_space import BookieInfo
from bookie.errors import BookKeeperError, ClientClosed, RequestTimeout
from bookie.metadata.driver import Subscription

__all__ = ["BookieInfoReader", "free_bytes", "scan"]

QUESTIONS_MAX = 64

log = logging.getLogger(__name__)

Listener = Callable[[Mapping[str, BookieInfo]], None]


async def scan(bookies: Bookies, asked: Collection[str], timeout_s: float) -> dict[str, BookieInfo | BookKeeperError]:
    """Each one's answer, or why there is none. Ends within `timeout_s`, whoever is silent."""
    answers: dict[str, BookieInfo | BookKeeperError] = {}
    gate = asyncio.Semaphore(QUESTIONS_MAX)
    until = asyncio.get_running_loop().time() + timeout_s

    async def ask(bookie: str) -> None:
        try:
            async with asyncio.timeout_at(until), gate:
                answers[bookie] = await bookies.bookie_info(bookie)
        except TimeoutError:
            answers[bookie] = RequestTimeout(f"bookie {bookie}: no answer to GET_BOOKIE_INFO in {timeout_s:g} s")
        except BookKeeperError as error:
            answers[bookie] = error

    async with asyncio.TaskGroup() as tasks:
        for bookie in sorted(asked):
            tasks.create_task(ask(bookie))
    return answers


class BookieInfoReader:
    """Polls while it is started and somebody uses it: the policy with weights, or a subscriber."""

    def __init__(self, config: ClientConfig, bookies: Bookies, placement: Placement | None = None) -> None:
        self.known: dict[str, BookieInfo] = {}
        self.errors: dict[str, BookKeeperError] = {}
        """Of bookies of which nothing is known: why."""
        self._config = config
        self._bookies = bookies
        self._listeners: list[Listener] = []
        if placement is not None and config.weighted_placement:
            self._listeners.append(lambda known: placement.weights_changed(free_bytes(known)))
        self._members: frozenset[str] = frozenset()
        self._full_at = -math.inf
        self._partial_at = math.inf
        self._wake = asyncio.Event()
        self._started = False
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """From now on poll, as soon as somebody listens."""
        self._started = True
        if self._listeners and self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run())

    async def stop(self) -> None:
        """No more questions. May be called twice."""
        self._started = False
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    def subscribe(self, listener: Listener) -> Subscription:
        """Told what is known after each scan, and at once if something is; polling begins with the first one."""
        self._listeners.append(listener)
        if self.known:
            listener(dict(self.known))
        self._wake.set()
        if self._started:
            self.start()
        return _Unsubscribe(self._listeners, listener)

    def refresh(self) -> None:
        """Ask all as soon as may be."""
        self._full_at = -math.inf
        self._wake.set()

    def members_changed(self, members: frozenset[str]) -> None:
        """These are writable now: who left is forgotten, who came is asked."""
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

    async def _ask(self, asked: Collection[str]) -> None:
        self._partial_at = math.inf
        answers = await scan(self._bookies, asked, self._config.bookie_info_timeout_s)
        for bookie, answer in answers.items():
            if bookie not in self._members or isinstance(answer, ClientClosed):
                continue
            if isinstance(answer, BookieInfo):
                self.known[bookie] = answer
                self.errors.pop(bookie, None)
            else:
                log.warning("no disk space known bookieId=%s error=%s", bookie, answer)
                self.known.pop(bookie, None)
                self.errors[bookie] = answer
        if self.errors:
            again = asyncio.get_running_loop().time() + self._config.bookie_info_retry_s
            self._partial_at = min(self._partial_at, again)
        for listener in tuple(self._listeners):
            try:
                listener(dict(self.known))
            except Exception:  # it is its owner's; the others and the next scan go on
                log.exception("a listener of bookies' disk space failed listener=%r", listener)


class _Unsubscribe:
    """What `subscribe` returns."""

    def __init__(self, listeners: list[Listener], listener: Listener) -> None:
        self._listeners = listeners
        self._listener = listener

    def close(self) -> None:
        """Not told any more. May be called twice."""
        self._listeners[:] = [one for one in self._listeners if one is not self._listener]


def free_bytes(known: Mapping[str, BookieInfo]) -> dict[str, int]:
    """By bookie."""
    return {bookie: info.free for bookie, info in known.items()}
