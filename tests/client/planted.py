"""Bugs of calls that are cancelled, planted in the client by tests, which must find each of them.

Each replaces one function of the client while a test runs, by what somebody could have written instead.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, TypeVar
from unittest.mock import patch

from bookie.client import aio
from bookie.client.bookies.link import Link
from bookie.client.entries.verified import EntryBatch
from bookie.client.event_loop.pages import Pages
from bookie.client.ledgers.context import ClientContext
from bookie.client.ledgers.creating import NewLedger, create_ledger
from bookie.client.ledgers.line import WAITING_BYTES, Line
from bookie.client.ledgers.metadata_loop import Known
from bookie.client.ledgers.ranges import RangeReader
from bookie.client.ledgers.throttle import Backpressure

__all__ = ["PLANTED"]

T = TypeVar("T")


@contextmanager
def taken_dropped() -> Iterator[None]:
    """Batches that a call has taken are lost if it is cancelled before it hands them over."""
    ready = RangeReader.ready

    async def late(self: RangeReader, limit: int = 0) -> list[EntryBatch]:
        got = await ready(self, limit)
        await asyncio.sleep(0)
        return got

    with patch.object(RangeReader, "ready", late):
        yield


@contextmanager
def page_dropped() -> Iterator[None]:
    """The page of a list that a cancelled call has asked for is lost."""

    async def impatient(self: Pages[T]) -> list[T]:
        page = None if self._over else await asyncio.shield(asyncio.ensure_future(self._ask()))
        if page is None:
            self._over = True
            raise StopAsyncIteration
        return page

    with patch.object(Pages, "__anext__", impatient):
        yield


@contextmanager
def place_kept() -> Iterator[None]:
    """Who is cancelled while it waits for room keeps its place in front of the others."""

    async def turn(self: Backpressure, attempt: Callable[[], T | None]) -> T:
        if not (self._in_order and self.waiting) and (result := attempt()) is not None:
            return result
        caller = self.enter()
        result = await self.turn_of(caller, attempt)
        self.leave(caller)
        return result

    with patch.object(Backpressure, "turn", turn):
        yield


@contextmanager
def bytes_kept() -> Iterator[None]:
    """The bytes of an add that is cancelled while it waits for room are not given back."""
    join = Line.join

    def keep(self: Line, size: int, accept: Any) -> asyncio.Future[int]:
        future = join(self, size, accept)

        def ended(_: asyncio.Future[int]) -> None:
            if future.cancelled() and future in self._waiting.values():
                self._bytes += size + WAITING_BYTES

        future.add_done_callback(ended)
        return future

    with patch.object(Line, "join", keep):
        yield


@contextmanager
def waiter_removed_twice() -> Iterator[None]:
    """Who waits for a key of a connection removes itself although the connection has removed it before."""

    async def wait_for_key(self: Link[Any], _: object, due: float) -> None:
        wait = self._loop.create_future()
        self._key_waits[wait] = None
        try:
            async with asyncio.timeout_at(due):
                await wait
        finally:
            del self._key_waits[wait]

    with patch.object(Link, "_key_wait", wait_for_key):
        yield


@contextmanager
def ledger_left() -> Iterator[None]:
    """A ledger whose creator is cancelled stays, although nobody has a handle."""

    async def create(
        context: ClientContext, wanted: NewLedger, _: Callable[[Coroutine[Any, Any, None]], None]
    ) -> Known:
        return await asyncio.shield(asyncio.ensure_future(create_ledger(context, wanted)))

    with patch.object(aio.client, "create_owned", create):
        yield


PLANTED: dict[str, Callable[[], AbstractContextManager[None]]] = {
    "bytes_kept": bytes_kept,
    "ledger_left": ledger_left,
    "page_dropped": page_dropped,
    "place_kept": place_kept,
    "taken_dropped": taken_dropped,
    "waiter_removed_twice": waiter_removed_twice,
}
"""The bugs, by name."""
