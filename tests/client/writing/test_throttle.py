"""Waiting for the rate limit and for room, on a loop without a clock."""

import asyncio

import numpy as np
import pytest

from bookie._fast.client.write_window import WriteWindow
from bookie.client.entries.digest import Digest, DigestType
from bookie.client.ledgers.adds import Adds
from bookie.client.ledgers.throttle import Backpressure, RateLimit
from bookie.errors import TooManyRequests
from tests.sim.loop import VirtualLoop


def test_rate() -> None:
    """After a pause, one second's worth of turns comes at once, and then turns come evenly."""
    loop = VirtualLoop()

    async def turns() -> list[float]:
        rate = RateLimit(10, burst=10)
        assert rate.limited
        start, times = loop.time(), []
        for _ in range(25):
            await rate.take()
            times.append(round(loop.time() - start, 6))
        return times

    assert loop.run(turns()) == [0.0] * 10 + [round(k / 10, 6) for k in range(1, 16)]
    assert not RateLimit(0).limited
    assert not RateLimit(-1).limited


class Acknowledged(Adds):
    """A writer whose bookies acknowledge each entry at once; it records the time of each."""

    def __init__(self, loop: VirtualLoop, per_s: int, count_max: int) -> None:
        self.ledger = 7
        self._window = WriteWindow(
            Digest.of(DigestType.CRC32C, b"").digester, 7, (1, 1, 1), lambda _, error: error, count_max=count_max
        )
        self._rate = RateLimit(per_s, burst=per_s)
        self._backpressure = Backpressure()
        self._loop = loop
        self._scheduled = False
        self.times: list[float] = []

    def _send(self) -> None:
        assert self._loop is not None
        self._scheduled = False
        first = self._window.next - self._window.unsent
        entries = np.arange(first, first + self._window.take(self._loop.time()), dtype=np.int64)
        self._window.answered(0, entries, np.zeros(len(entries), dtype=np.int32))
        for entry, _ in self._window.quorate():
            self._window.complete(entry)
        self._window.release()
        self.times += [round(self._loop.time(), 6)] * len(entries)
        self._backpressure.made()


def test_entries_that_are_added_together_keep_to_the_rate() -> None:
    """When a number of entries is added at once, those before them have had their time: beyond the burst and one
    window, no entry is early.
    """
    loop, per_s, window = VirtualLoop(), 10, 20
    writer = Acknowledged(loop, per_s, window)
    offsets = np.arange(101, dtype=np.int64)
    assert loop.run(writer.append_all(bytes(100), offsets)) == 99
    assert len(writer.times) == 100
    for k, at in enumerate(writer.times):
        assert k < at * per_s + per_s + window, f"entry {k} was added after {at} s"


def test_room() -> None:
    """Callers are woken in the order of their calls; those that gave up are skipped."""
    loop = VirtualLoop()

    async def scenario() -> list[int]:
        room, served = Backpressure(), []

        async def wait(number: int) -> None:
            await room.wait()
            served.append(number)

        tasks = [asyncio.ensure_future(wait(k)) for k in range(5)]
        await asyncio.sleep(1)
        tasks[1].cancel()
        await asyncio.sleep(1)
        room.made(2)
        await asyncio.sleep(1)
        assert served == [0, 2]
        room.made()
        await asyncio.gather(*tasks, return_exceptions=True)
        return served

    assert loop.run(scenario()) == [0, 2, 3, 4]


def test_room_that_is_not_made_in_time() -> None:
    """With waitTimeoutOnBackpressureMs, a caller that waited too long gets an error; others wait on."""
    loop = VirtualLoop()

    async def scenario() -> float:
        room = Backpressure(2.0)
        with pytest.raises(TooManyRequests, match="within 2 s"):
            await room.wait()
        later = asyncio.ensure_future(room.wait())
        await asyncio.sleep(1)
        room.made(1)
        await later
        return loop.time()

    began = loop.time()
    assert loop.run(scenario()) - began == pytest.approx(3.0)
