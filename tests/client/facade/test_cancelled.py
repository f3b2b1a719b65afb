"""Calls of the asyncio client that are cancelled wherever they wait: nothing is skipped, repeated or left behind."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import pytest

from bookie.client import BookKeeper as ThreadsBookKeeper
from bookie.client import ReadHandle as ThreadsReadHandle
from bookie.client.aio import BookKeeper
from bookie.client.aio.reading import Batches, ReadHandle
from bookie.client.event_loop.thread import LoopThread
from bookie.metadata.records.ledger_metadata import LedgerState
from tests.client.cancelling import Moment, in_spite_of_cancellations
from tests.client.writing.cluster import uri_of
from tests.fixtures.bookies import BookieProcess

PROTOCOLS = pytest.mark.parametrize("v2", [True, False], ids=["v2", "v3"])
ENTRIES = 60


async def taken(batches: Batches, moment: Moment) -> list[bytes]:
    """Return all payloads, where each call is cancelled at each of the points where it waits before it may end."""
    found: list[bytes] = []
    while True:
        try:
            batch = await in_spite_of_cancellations(batches.__anext__, moment)
        except StopAsyncIteration:
            return found
        found += [bytes(entry.data) for entry in batch]


ITERATORS: dict[str, Callable[[ReadHandle], Batches]] = {
    "batches": lambda reader: reader.batches(max_count=3),
    "follow": lambda reader: reader.follow(max_count=3),
}


@PROTOCOLS
@pytest.mark.parametrize("moment", Moment)
@pytest.mark.parametrize("kind", ITERATORS)
def test_no_entry_is_lost_by_a_cancelled_iteration(uri: str, v2: bool, kind: str, moment: Moment) -> None:
    """Every entry arrives once and in order, though each call is cancelled at every point before it is repeated."""

    async def scenario() -> None:
        payloads = [b"entry %d" % entry for entry in range(ENTRIES)]
        async with BookKeeper(uri, useV2WireProtocol=v2) as bk:
            async with bk.create_ledger(write_quorum_size=3) as writer:
                for payload in payloads:
                    await writer.append(payload)
            async with bk.open_ledger(writer.id) as reader:
                assert await taken(ITERATORS[kind](reader), moment) == payloads

    asyncio.run(asyncio.wait_for(scenario(), 60))


def test_a_close_that_was_cancelled_is_repeated(bookies: Callable[..., list[BookieProcess]]) -> None:
    """No call returns as if the ledger were closed before it is, in the metadata store that hangs here."""
    (one,) = bookies(1)

    async def scenario() -> None:
        async with BookKeeper(uri_of(one)) as bk:
            writer = await bk.create_ledger(ensemble_size=1, write_quorum_size=1, ack_quorum_size=1)
            await writer.append(b"one")
            one.freeze()
            try:
                for _ in range(2):
                    with pytest.raises(TimeoutError):
                        await asyncio.wait_for(writer.close(), 0.1)
            finally:
                one.thaw()
            await writer.close()
            assert (await bk.ledger_metadata(writer.id)).state is LedgerState.CLOSED

    asyncio.run(asyncio.wait_for(scenario(), 60))


@pytest.mark.parametrize("moment", Moment)
def test_a_cancelled_create_leaves_no_ledger(uri: str, moment: Moment) -> None:
    """Wherever a create is cancelled, the ledger for which nobody has a handle is deleted again."""

    async def scenario() -> None:
        async with BookKeeper(uri) as bk:
            before = {ledger async for ledger in bk.list_ledgers()}
            writer = await in_spite_of_cancellations(bk.create_ledger, moment)
            while bk._scope.tidying:
                await asyncio.wait(bk._scope.tidying)
            assert {ledger async for ledger in bk.list_ledgers()} - before == {writer.id}
            await writer.close()

    asyncio.run(asyncio.wait_for(scenario(), 60))


def test_cancelled_futures_of_handles_leave_no_ledger(uri: str) -> None:
    """The same with the futures of the client for threads, cancelled while their creates are on their way."""
    with ThreadsBookKeeper(uri) as bk:
        before = set(bk.list_ledgers())
        futures = [bk.create_ledger_async() for _ in range(16)]
        futures[7].result()
        kept = {future.result().id for future in futures if not future.cancel()}

        async def tidied() -> None:
            while bk._aio._scope.tidying:
                await asyncio.wait(bk._aio._scope.tidying)

        assert len(kept) < len(futures)
        while set(bk.list_ledgers()) - before != kept:
            bk._thread.run(tidied())


async def nothing() -> None:
    """Do nothing."""


def test_a_result_of_a_call_that_cancels_its_own_future() -> None:
    """A call that ends just when its future is cancelled is given back."""
    given_back: Future[int] = Future()
    made: Future[Future[int]] = Future()

    async def call() -> int:
        (await asyncio.wrap_future(made)).cancel()
        return 5

    thread = LoopThread("test", nothing, lambda: None)
    thread.start()
    try:
        made.set_result(thread.submit(call(), unclaimed=given_back.set_result))
        assert given_back.result(60) == 5
    finally:
        thread.stop()


def test_a_result_that_nobody_takes() -> None:
    """A call that ends just when its future is cancelled is given back before a client that is closed at once is."""
    order: list[str] = []
    held, go_on = threading.Event(), threading.Event()
    started: Future[asyncio.Future[str]] = Future()

    async def call() -> str:
        answer: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        started.set_result(answer)
        return await answer

    async def hold(answer: asyncio.Future[str]) -> None:
        answer.set_result("given back")  # the call ends in the loop's next round, in which the client is closed
        held.set()
        assert go_on.wait(60)

    async def close() -> None:
        order.append("closed")

    thread = LoopThread("test", nothing, lambda: None)
    thread.start()
    try:
        future = thread.submit(call(), unclaimed=order.append)
        holding = thread.submit(hold(started.result(60)))
        assert held.wait(60)
        assert future.cancel()
        closing = thread.submit(close())
        go_on.set()
        holding.result(60)
        closing.result(60)
        thread.run(nothing())
        assert order == ["given back", "closed"]
    finally:
        go_on.set()
        thread.stop()


def test_a_reader_that_nobody_takes(uri: str) -> None:
    """A reader whose future is cancelled too late is closed: it does not watch its ledger any more."""
    opened: Future[ReadHandle] = Future()
    made: Future[Future[ThreadsReadHandle]] = Future()
    with ThreadsBookKeeper(uri) as bk, bk.create_ledger() as writer:
        really: Any = bk._open

        async def late(*given: Any, **named: Any) -> ThreadsReadHandle:
            reader: ThreadsReadHandle = await really(*given, **named)
            assert reader._handle._reading.view._watch is not None
            (await asyncio.wrap_future(made)).cancel()
            opened.set_result(reader._handle)
            return reader

        bk._open = late  # type: ignore[method-assign]
        made.set_result(bk.open_ledger_async(writer.id, recovery=False))
        reader = opened.result(60)
        bk._thread.run(nothing())
        assert reader._reading.view._watch is None
        assert "closed handle" in repr(reader)
