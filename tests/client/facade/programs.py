"""Programs of the asyncio client whose awaits are cancelled anywhere, compared with what they do undisturbed.

A program writes a ledger while others follow it, and then reads it in every way. Each of its calls may be cancelled
at any point where it waits. Calls that can be repeated are repeated until they have a result; a cancelled add is not,
so its entry may or may not be in the ledger.
"""

import asyncio
import contextlib
import itertools
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from typing import Any, TypeVar

import numpy as np
import pytest

from bookie.client.aio import BookKeeper, ReadHandle, WriteHandle
from bookie.client.entries.verified import EntryBatch
from bookie.errors import LedgerFenced, NoSuchLog
from bookie.metadata.driver import Versioned
from bookie.metadata.records.ledger_metadata import LedgerState
from bookie.metadata.records.logs import Log
from tests.client.cancelling import Interrupted, Moment, interrupted

T = TypeVar("T")
CALLS = 60
"""The calls that write in one program."""


class Fickle:
    """Makes calls, and cancels a share of them at a point of its choice."""

    def __init__(self, rng: random.Random, share: float) -> None:
        self._rng = rng
        self._share = share

    async def once(self, call: Callable[[], Awaitable[T]]) -> T:
        """Make a call, or raise Interrupted if it was cancelled."""
        if self._rng.random() >= self._share:
            return await call()
        moment = self._rng.choice(list(Moment))
        return await interrupted(call(), self._rng.choice((1, 1, 2, 2, 3, 4, 6, 9)), moment)

    async def result(self, call: Callable[[], Awaitable[T]]) -> T:
        """Make a call again and again, until it has a result."""
        while True:
            try:
                return await self.once(call)
            except Interrupted:
                continue

    async def all(self, iterator: AsyncIterator[T]) -> list[T]:
        """Return all items of an iterator."""
        items: list[T] = []
        while True:
            try:
                items.append(await self.result(iterator.__anext__))
            except StopAsyncIteration:
                return items


def payloads(batches: Iterable[EntryBatch]) -> list[bytes]:
    """Return the payloads of all entries."""
    return [entry.payload for batch in batches for entry in batch]


def in_order(found: list[bytes], called: list[bytes]) -> bool:
    """Return whether `found` is what remains of `called` when some are left out."""
    rest = iter(called)
    return all(payload in rest for payload in found)


class Program:
    """Writes a ledger. It knows which entries were called for, and which of them were acknowledged."""

    def __init__(self, rng: random.Random, fickle: Fickle, ledger: WriteHandle) -> None:
        self._rng = rng
        self._fickle = fickle
        self._ledger = ledger
        self._numbers = itertools.count()
        self._pending: list[tuple[asyncio.Future[int], bytes]] = []
        self.called: list[bytes] = []
        self.acknowledged: dict[int, bytes] = {}

    async def write(self) -> None:
        """Add entries in every way."""
        ways = [self._append, self._append_async, self._append_async, self._append_all, self._flush, self._take_back]
        line, room = self._ledger.writer._line, self._ledger.writer._backpressure
        for _ in range(CALLS):
            with contextlib.suppress(Interrupted):
                await self._rng.choice(ways)()
            assert len(room.waiting) == len(line._waiting)
        await self._fickle.result(self._ledger.flush)
        assert (line._bytes, line._waiting, len(room.waiting)) == (0, {}, 0)
        for future, payload in self._pending:
            if not future.cancelled():
                self.acknowledged[future.result()] = payload

    def _next(self) -> bytes:
        payload = b"%d " % next(self._numbers) * self._rng.choice((1, 10, 2000))
        self.called.append(payload)
        return payload

    async def _append(self) -> None:
        payload = self._next()
        self.acknowledged[await self._fickle.once(lambda: self._ledger.append(payload))] = payload

    def _add_some(self) -> None:
        for _ in range(self._rng.choice((1, 1, 4))):
            payload = self._next()
            self._pending.append((self._ledger.append_async(payload), payload))

    async def _append_async(self) -> None:
        self._add_some()
        if self._rng.random() < 0.5:
            await self._fickle.result(self._ledger.drain)

    async def _append_all(self) -> None:
        many = [self._next() for _ in range(self._rng.randint(1, 12))]
        offsets = np.cumsum([0, *map(len, many)], dtype=np.int64)
        last = await self._fickle.once(lambda: self._ledger.append_all(b"".join(many), offsets))
        await self._fickle.result(self._ledger.flush)
        self.acknowledged.update(zip(range(last - len(many) + 1, last + 1), many, strict=True))

    async def _flush(self) -> None:
        await self._fickle.once(self._ledger.flush)

    async def _take_back(self) -> None:
        """Cancel an add. Only one that waits for room is taken back, as the last of some usually does."""
        if self._rng.random() < 0.5:
            self._add_some()
            self._pending[-1][0].cancel()
        elif self._pending:
            self._rng.choice(self._pending)[0].cancel()


async def follow(fickle: Fickle, bk: BookKeeper, ledger: int, rng: random.Random) -> list[bytes]:
    """Read a ledger to its end while it is written, by batches or by polls."""
    async with await fickle.result(lambda: bk.open_ledger(ledger, recovery=False)) as reader:
        batches = reader.follow(max_count=rng.choice((0, 1, 5)))
        if rng.random() < 0.5:
            return payloads(await fickle.all(batches))
        found: list[EntryBatch] = []
        while True:
            try:
                batch = await fickle.once(lambda: batches.next(timeout=rng.choice((0.001, 60))))
            except (TimeoutError, Interrupted):
                continue
            if batch is None:
                return payloads(found)
            found.append(batch)


def questions(bk: BookKeeper, reader: ReadHandle, name: str, rng: random.Random) -> list[Callable[[], Awaitable[Any]]]:
    """Return calls whose results do not depend on how often they were tried."""
    last = reader.last_add_confirmed
    first = rng.randint(0, last)

    async def of(batch: Awaitable[EntryBatch]) -> list[bytes]:
        return payloads([await batch])

    async def ledgers(log: Awaitable[Versioned[Log]]) -> tuple[int, ...]:
        return (await log).value.ledgers

    return [
        lambda: of(reader.read(first, last)),
        lambda: of(reader.read_unconfirmed(first, last)),
        lambda: of(reader.batch_read(first, 3)),
        lambda: of(reader.batch_read_unconfirmed(first, 3)),
        reader.read_last_add_confirmed,
        reader.try_read_last_add_confirmed,
        lambda: bk.ledger_metadata(reader.id),
        bk.bookies,
        bk.known_bookies,
        lambda: ledgers(bk.logs.append(name, [reader.id])),
        lambda: ledgers(bk.logs.get(name)),
    ]


async def run(uri: str, rng: random.Random) -> None:
    """Run one program, and check all that it has found and left; also that nobody is left among those that wait."""
    fickle, steady = Fickle(rng, rng.choice((0.2, 0.5, 0.8))), Fickle(rng, 0)
    before = asyncio.all_tasks()
    settings = {"useV2WireProtocol": rng.random() < 0.5, "maxOutstandingAdds": rng.choice((2, 10, 10_000))}
    async with BookKeeper(uri, throttle=rng.choice((0, 0, 150)), **settings) as bk:
        known = {ledger async for ledger in bk.list_ledgers()}
        for _ in range(4):
            await bk.delete_ledger((await fickle.result(bk.create_ledger)).id)
        writer = await fickle.result(lambda: bk.create_ledger(write_quorum_size=3))
        followers = [asyncio.ensure_future(follow(fickle, bk, writer.id, rng)) for _ in range(2)]
        program = Program(rng, fickle, writer)
        await program.write()
        if recovered := rng.random() < 0.3:
            async with await fickle.result(lambda: bk.open_ledger(writer.id)):
                pass
            with pytest.raises(LedgerFenced):
                await writer.append(b"late")
        else:
            await fickle.result(writer.close)
        async with bk.open_ledger(writer.id) as reader:
            found = [entry.payload async for entry in reader]
            assert in_order(found, program.called)
            assert len(set(found)) == len(found)
            assert {entry: found[entry] for entry in program.acknowledged} == program.acknowledged
            assert await asyncio.gather(*followers) == [found, found]
            metadata = await bk.ledger_metadata(writer.id)
            assert (metadata.state, metadata.last_entry) == (LedgerState.CLOSED, len(found) - 1), recovered
            assert payloads(await fickle.all(reader.batches(max_count=rng.choice((0, 2))))) == found
            assert [entry.payload for entry in await fickle.all(aiter(reader))] == found
            for question in questions(bk, reader, f"log {writer.id}", rng):
                assert await fickle.result(question) == await steady.result(question)
        while bk._scope.tidying:
            await asyncio.wait(bk._scope.tidying)
        assert set(await fickle.all(bk.list_ledgers())) - known == {writer.id}
        await fickle.result(lambda: bk.delete_ledger(writer.id))
        assert writer.id not in await steady.all(bk.list_ledgers())
        with contextlib.suppress(NoSuchLog):
            await fickle.result(lambda: bk.logs.delete(f"log {writer.id}"))
    if left := asyncio.all_tasks() - before:
        await asyncio.wait(left, timeout=60)
    assert not asyncio.all_tasks() - before
