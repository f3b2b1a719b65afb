"""Short courses of calls of the asyncio client, each of which is cancelled at every point where it waits, in turn.

Nothing is drawn and nothing depends on how fast a bookie is, so what a course can find, it finds every time. Programs
(`programs`) combine calls at random instead.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, TypeVar

import numpy as np

from bookie.client.aio import BookKeeper, WriteHandle
from tests.client.cancelling import Interrupted, Moment, in_spite_of_cancellations, interrupted

__all__ = ["COURSES"]

T = TypeVar("T")
POINTS = 6
"""The points at which calls are cancelled that cannot be repeated until they have a result."""


async def items(iterator: AsyncIterator[T], moment: Moment) -> list[T]:
    """Return all items of an iterator, of which each is asked for in spite of cancellations."""
    found: list[T] = []
    while True:
        try:
            found.append(await in_spite_of_cancellations(iterator.__anext__, moment))
        except StopAsyncIteration:
            return found


async def ended(before: set[asyncio.Task[Any]]) -> None:
    """Wait until everything that a call has left behind is done."""
    while left := asyncio.all_tasks() - before:
        await asyncio.wait(left, timeout=60)


async def creations(bk: BookKeeper, moment: Moment) -> None:
    """A ledger whose creation was cancelled does not stay."""
    before = asyncio.all_tasks()
    known = {ledger async for ledger in bk.list_ledgers()}
    ledger = await in_spite_of_cancellations(bk.create_ledger, moment)
    await ledger.close()
    # What the client itself runs for a moment ends, too: the creation that somebody has left is one such task.
    while bk._scope.tidying:
        await asyncio.wait(bk._scope.tidying)
    await ended(before)
    assert {one async for one in bk.list_ledgers()} - known == {ledger.id}
    await bk.delete_ledger(ledger.id)


async def lists(bk: BookKeeper, moment: Moment) -> None:
    """A list of ledgers is complete."""
    created = [(await bk.create_ledger()).id for _ in range(2)]
    found = await items(aiter(bk.list_ledgers()), moment)
    assert set(created) <= set(found)
    assert len(set(found)) == len(found)
    for ledger in created:
        await bk.delete_ledger(ledger)


async def written(bk: BookKeeper) -> int:
    """Return a closed ledger with ten entries, on one bookie."""
    async with await bk.create_ledger(ensemble_size=1, write_quorum_size=1, ack_quorum_size=1) as ledger:
        await ledger.append_all(b"0123456789", np.arange(11))
    return ledger.id


async def batches(bk: BookKeeper, moment: Moment) -> None:
    """A range has all of its entries."""
    async with bk.open_ledger(await written(bk)) as reader:
        found = await items(aiter(reader.batches(max_count=2)), moment)
        assert [entry.id for batch in found for entry in batch] == list(range(10))


async def full(bk: BookKeeper) -> WriteHandle:
    """Return a ledger without room for another add, until the event loop goes on."""
    ledger = await bk.create_ledger()
    await ledger.append(b"the connections are there")
    for _ in range(2):
        ledger.append_async(b"fills the window")
    return ledger


async def places(bk: BookKeeper, moment: Moment) -> None:
    """Whose add was cancelled while it waited for room is not in the line any more."""
    for point in range(1, POINTS):
        ledger = await full(bk)
        room = ledger.writer._backpressure
        try:
            await interrupted(ledger.append(b"waits for room"), point, moment)
        except Interrupted:
            assert not room.waiting
        async with asyncio.timeout(60):
            await ledger.flush()
        assert not room.waiting
        await ledger.close()


async def bytes_in_line(bk: BookKeeper, moment: Moment) -> None:
    """The bytes of an add that was cancelled while it waited for room are given back."""
    for turns in range(POINTS):
        ledger = await full(bk)
        line = ledger.writer._line
        future = ledger.append_async(b"waits for room")
        for _ in range(turns):
            await asyncio.sleep(0)
        if moment is Moment.WHILE_IT_WAITS:
            future.cancel()
        else:
            asyncio.get_running_loop().call_soon(future.cancel)
        await ledger.flush()
        assert (line._bytes, line._waiting) == (0, {})
        await ledger.close()


async def same_entries(bk: BookKeeper, moment: Moment) -> None:
    """Two reads of the same entries at a time both have a result, whenever one more is cancelled."""
    async with bk.open_ledger(await written(bk)) as reader:
        for point in range(1, POINTS):
            calls: list[Awaitable[Any]] = [interrupted(reader.read(0, 9), point, moment)]
            calls += [reader.read(0, 9), reader.read(0, 9)]
            cancelled, *others = await asyncio.gather(*calls, return_exceptions=True)
            for batch in others if isinstance(cancelled, Interrupted) else (cancelled, *others):
                assert not isinstance(batch, BaseException), batch
                assert [entry.payload for entry in batch] == [b"%d" % k for k in range(10)]


COURSES: dict[str, Callable[[BookKeeper, Moment], Awaitable[None]]] = {
    "bytes_kept": bytes_in_line,
    "ledger_left": creations,
    "page_dropped": lists,
    "place_kept": places,
    "taken_dropped": batches,
    "waiter_removed_twice": same_entries,
}
"""The courses, by the planted bug that each finds."""
