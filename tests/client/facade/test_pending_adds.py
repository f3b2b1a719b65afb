"""Pending adds of the asyncio client: one await gives the id, asyncio takes them, and they wait in order for room."""

import asyncio
from typing import Any

import pytest

from bookie.client.aio import AdvancedWriteHandle, BookKeeper, WriteHandle
from bookie.errors import IncorrectParameter, LedgerClosed, TooManyRequests
from tests.fixtures.bookies import BookieProcess

SMALL = {"maxOutstandingAdds": 2}
"""The settings of a client whose third add waits for room."""
LARGE = 800_000
"""Bytes of an entry of which only one has room in a window of 1 MiB."""


async def contents(bk: BookKeeper, ledger: int) -> list[bytes]:
    """Return all entries of a ledger."""
    async with bk.open_ledger(ledger) as reader:
        return [entry.payload async for entry in reader]


@pytest.mark.parametrize("settings", [{}, SMALL, {"throttle": 200}], ids=["room", "no room", "rate"])
def test_an_add_is_one_await(uri: str, settings: dict[str, Any]) -> None:
    """An await gives the id; gather, wait, as_completed, wait_for and wrap_future take pending adds."""

    async def scenario() -> None:
        async with BookKeeper(uri, **settings) as bk:
            async with bk.create_ledger() as ledger:
                payloads = [b"%d" % number for number in range(60)]
                adds = [ledger.append_async(payload) for payload in payloads]
                assert await adds[7] == 7
                assert await asyncio.wait_for(adds[8], 60) == 8
                assert await asyncio.wrap_future(adds[9]) == 9
                assert sorted([await one for one in asyncio.as_completed(adds[:20])]) == list(range(20))
                assert await asyncio.gather(*adds) == list(range(60))
                assert (await asyncio.wait(adds))[0] == set(adds)
                assert await ledger.append_async(b"last") == 60
            assert await contents(bk, ledger.id) == [*payloads, b"last"]

    asyncio.run(scenario())


def test_adds_wait_in_the_order_of_the_calls(uri: str) -> None:
    """Small entries do not overtake large ones that wait for room; `flush` and leaving wait for those in line, too; a
    payload may change after the call.
    """

    async def scenario() -> None:
        async with BookKeeper(uri, maxOutstandingAddBytes=1 << 20) as bk:
            async with bk.create_ledger() as ledger:
                payloads = [bytes([number]) * (LARGE if number % 2 else 1) for number in range(16)]
                buffer = bytearray(LARGE)
                for number, payload in enumerate(payloads):
                    buffer[: len(payload)] = payload
                    ledger.append_async(memoryview(buffer)[: len(payload)])
                    if number == 8:
                        await ledger.flush()
                        assert ledger.last_add_confirmed == 8
                at_last = asyncio.ensure_future(ledger.append(b"by append"))
                await asyncio.sleep(0)
            assert await at_last == 16
            assert await contents(bk, ledger.id) == [*payloads, b"by append"]

    asyncio.run(scenario())


def test_the_line_is_bounded(uri: str) -> None:
    """Beyond `maxWaitingAddBytes` an add is refused at once; what was accepted is stored, and there is room later."""

    async def scenario() -> None:
        async with BookKeeper(uri, **SMALL, maxWaitingAddBytes=1 << 20) as bk, bk.create_ledger() as ledger:
            payload = b"x" * 100_000
            adds: list[asyncio.Future[int]] = []
            with pytest.raises(TooManyRequests, match=r"maxWaitingAddBytes is 1048576: await drain\(\) between"):
                adds.extend(ledger.append_async(payload) for _ in range(100))
            assert await asyncio.gather(*adds) == list(range(2 + (1 << 20) // 102_048))
            assert await ledger.append_async(payload) == len(adds)

    asyncio.run(scenario())


def test_draining_bounds_what_waits(uri: str) -> None:
    """Who drains after each call has at most one add in line; draining of a closed ledger says that it is closed."""

    async def scenario() -> None:
        async with BookKeeper(uri, **SMALL) as bk:
            async with bk.create_ledger() as ledger:
                for number in range(100):
                    ledger.append_async(b"%d" % number)
                    await ledger.drain()
                    assert ledger.last_add_pushed == number
                    assert ledger.writer.pending < 2
            with pytest.raises(LedgerClosed):
                await ledger.drain()

    asyncio.run(scenario())


async def stuck(bk: BookKeeper) -> tuple[AdvancedWriteHandle, list[asyncio.Future[int]]]:
    """Return a ledger whose window is full of entries above a missing one, with further adds in line."""
    ledger = await bk.create_ledger_advanced()
    adds = [ledger.append_async(entry, b"%d" % entry) for entry in (1, 2, 3, 4)]
    await asyncio.sleep(0)
    assert not any(add.done() for add in adds)
    return ledger, adds


def test_an_add_in_line_can_be_taken_back(uri: str) -> None:
    """A pending add that is cancelled before it had room is not in the ledger; one that had room is."""

    async def scenario() -> None:
        async with BookKeeper(uri, **SMALL) as bk:
            ledger, adds = await stuck(bk)
            assert adds[0].cancel()
            assert adds[2].cancel()
            assert await ledger.append_async(0, b"0") == 0
            assert await adds[1] == 2
            assert await ledger.append(3, b"again") == 3
            assert await adds[3] == 4
            await ledger.close()
            assert await contents(bk, ledger.id) == [b"0", b"1", b"2", b"again", b"4"]

    asyncio.run(scenario())


def test_adds_in_line_end_with_the_ledger(uri: str) -> None:
    """Closing fails all adds that are pending, also those that wait for room, and nobody is told twice."""

    async def scenario() -> None:
        complaints: list[dict[str, Any]] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))
        async with BookKeeper(uri, **SMALL) as bk:
            ledger, adds = await stuck(bk)
            await ledger.close()
            for error in await asyncio.gather(*adds, return_exceptions=True):
                assert isinstance(error, LedgerClosed)
            with pytest.raises(LedgerClosed):
                ledger.append_async(5, b"")
        assert complaints == []

    asyncio.run(scenario())


def test_an_add_that_gets_no_room_in_time(uri: str, cluster: list[BookieProcess]) -> None:
    """With waitTimeoutOnBackpressureMs, its future and a flush that waits for it say so; those with room go on."""

    async def scenario() -> None:
        async with BookKeeper(uri, waitTimeoutOnBackpressureMs=10, addEntryTimeoutSec=60, **SMALL) as bk:
            ledger: WriteHandle = await bk.create_ledger(write_quorum_size=3)
            assert await ledger.append(b"0") == 0
            for bookie in cluster:
                bookie.freeze()
            try:
                adds = [ledger.append_async(b"%d" % number) for number in (1, 2, 3)]
                with pytest.raises(TooManyRequests, match="no room"):
                    await ledger.flush()
                with pytest.raises(TooManyRequests, match="no room"):
                    await adds[2]
            finally:
                for bookie in cluster:
                    bookie.thaw()
            assert await asyncio.gather(*adds[:2]) == [1, 2]
            with pytest.raises(IncorrectParameter, match="payload of type str"):
                ledger.append_async("3")  # type: ignore[arg-type]
            await ledger.close()
            assert await contents(bk, ledger.id) == [b"0", b"1", b"2"]

    asyncio.run(scenario())
