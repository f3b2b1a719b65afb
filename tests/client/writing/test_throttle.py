"""Waiting for the rate limit and for room, on a loop without a clock."""

import asyncio

import pytest

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
