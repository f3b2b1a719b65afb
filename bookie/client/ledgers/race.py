"""Ask one replica after the other until one gives a good answer. Event loop.

The next replica is asked when one has failed and no other request is outstanding, or when an answer is late (a
speculative read). The first good answer ends the race; later ones are discarded. A request that is cancelled while the
race goes on, by whoever cancels all tasks of the event loop, has failed like one whose connection was lost.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

from bookie.errors import (
    BookieUnavailable,
    BookKeeperError,
    ClientClosed,
    NoSuchEntry,
    NoSuchLedger,
)

__all__ = ["MISSING", "Patience", "Race", "weightier"]

A = TypeVar("A")
R = TypeVar("R")

MISSING = (NoSuchEntry, NoSuchLedger)
"""Errors that say that the bookie does not have the entry."""


class Patience(NamedTuple):
    """How long an answer may take before the next replica is asked: at first, at most (seconds), and the factor of
    growth.

    Times of 0 and below mean that no other replica is asked.
    """

    first_s: float
    limit_s: float
    backoff: float


def weightier(error: BookKeeperError | None, later: BookKeeperError) -> BookKeeperError:
    """Return the more informative of two errors. Least informative is absence, then a bookie that cannot be reached."""
    if error is None or isinstance(error, MISSING):
        return later
    if isinstance(error, BookieUnavailable) and not isinstance(later, MISSING):
        return later
    return error


class Race(Generic[A, R]):
    """A request to the replicas of an entry. `ask` sends it to a bookie; `judge` turns an answer into the result, or
    raises.

    `replicas` are the bookies, best first. `heard` are the bookies that have answered any request of the same call;
    if one of them is late, it is waited for. When `enough_missing` bookies do not have the entry, the race ends.
    `on_error` is called with each error, and `on_slow` with each bookie that a later one has overtaken.
    """

    def __init__(
        self,
        replicas: Sequence[str],
        ask: Callable[[str], Awaitable[A]],
        judge: Callable[[str, A], R],
        patience: Patience,
        *,
        heard: set[str] | None = None,
        enough_missing: int = 0,
        on_error: Callable[[str, BookKeeperError], None] | None = None,
        on_slow: Callable[[str], None] | None = None,
    ) -> None:
        self._replicas = replicas
        self._ask = ask
        self._judge = judge
        self._patience = patience
        self._wait_s = patience.first_s
        self._heard = set() if heard is None else heard
        self._enough_missing = enough_missing
        self._on_error = on_error
        self._on_slow = on_slow
        self._sent = 0
        self._missing = 0
        self._error: BookKeeperError | None = None
        self._under_way: dict[asyncio.Future[A], str] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._caller: asyncio.Task[Any] | None = None  # while it waits for the first answer
        self._done: asyncio.Future[R] | None = None  # once another replica was asked

    async def run(self) -> R:
        """Return the first good answer, or raise the most informative error as it was raised by `ask` or `judge`.

        The first answer is awaited here, without a task, since most races need only one replica.
        """
        self._loop = asyncio.get_running_loop()
        if len(self._replicas) > 1 and self._wait_s > 0:
            self._timer = self._loop.call_later(self._wait_s, self._late)
        try:
            first = self._replicas[0]
            self._sent = 1
            answer, error = await self._first(first)
            if self._done is None and error is None:
                assert answer is not None
                self._heard.add(first)
                try:
                    return self._judge(first, answer)
                except BookKeeperError as wrong:
                    error = wrong
            done = self._raced()
            if not done.done():
                self._take(first, answer, error)
            return await done
        finally:
            if self._timer is not None:
                self._timer.cancel()
            under_way, self._under_way = self._under_way, {}
            for other in under_way:
                other.cancel()
            if self._done is not None and self._done.done() and not self._done.cancelled():
                self._done.exception()  # it was raised, or its caller has left

    async def _first(self, bookie: str) -> tuple[A | None, BookKeeperError | None]:
        """Return the answer or the error of the first replica; neither of them if another replica won in the
        meantime.
        """
        self._caller = caller = asyncio.current_task()
        assert caller is not None
        cancelled_before = caller.cancelling()
        try:
            return await self._ask(bookie), None
        except BookKeeperError as error:
            return None, error
        except asyncio.CancelledError:
            if self._done is None or not self._done.done():
                raise
            if caller.uncancel() > cancelled_before:  # it was also cancelled from outside
                raise
            return None, None
        finally:
            self._caller = None

    def _raced(self) -> asyncio.Future[R]:
        if self._done is None:
            self._done = self._loop.create_future()
        return self._done

    def _next(self) -> None:
        bookie = self._replicas[self._sent]
        self._sent += 1
        answer = asyncio.ensure_future(self._ask(bookie))
        self._under_way[answer] = bookie
        answer.add_done_callback(self._answered)

    def _late(self) -> None:
        self._timer = None
        if self._sent == len(self._replicas):  # the last one was asked because another had failed
            return
        if not any(bookie in self._heard for bookie in self._replicas[: self._sent]):
            self._raced()
            self._next()
        if self._sent < len(self._replicas):
            self._wait_s = min(self._patience.limit_s, self._wait_s * self._patience.backoff)
            self._timer = self._loop.call_later(self._wait_s, self._late)

    def _answered(self, answer: asyncio.Future[A]) -> None:
        error = _cancelled() if answer.cancelled() else answer.exception()
        bookie = self._under_way.pop(answer, None)
        done = self._raced()
        if bookie is None or done.done():  # the race has ended
            return
        try:
            if error is not None and not isinstance(error, BookKeeperError):
                raise error
            self._take(bookie, None if error else answer.result(), error)
        except Exception as unforeseen:  # noqa: BLE001 - it is raised in the caller
            done.set_exception(unforeseen)
        if done.done() and self._caller is not None:
            self._caller.cancel()

    def _take(self, bookie: str, answer: A | None, error: BookKeeperError | None) -> None:
        """Handle an answer or an error, while other requests may be outstanding."""
        done = self._raced()
        if answer is not None:
            self._heard.add(bookie)
            try:
                done.set_result(self._judge(bookie, answer))
            except BookKeeperError as wrong:
                error = wrong
            else:
                if self._on_slow:
                    for slow in self._replicas[: self._sent - 1]:
                        self._on_slow(slow)
                return
        assert error is not None
        if isinstance(error, ClientClosed):
            done.set_exception(error)
        else:
            self._failed(bookie, error, done)

    def _failed(self, bookie: str, error: BookKeeperError, done: asyncio.Future[R]) -> None:
        self._error = weightier(self._error, error)
        if self._on_error:
            self._on_error(bookie, error)
        if isinstance(error, MISSING):
            self._missing += 1
            if self._missing == self._enough_missing:
                done.set_exception(error)
                return
        if self._under_way or self._caller is not None:
            return
        if self._sent < len(self._replicas):
            self._next()
        else:
            done.set_exception(self._error)


def _cancelled() -> BookKeeperError:
    """Return the error of a request that ended cancelled by itself: nobody has cancelled the race."""
    return BookieUnavailable("the request was cancelled; try again")
