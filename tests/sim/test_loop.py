"""The loop without a clock: time jumps, order is kept, hangs are reported, and asyncio's own parts work on it."""

import asyncio

import pytest

from tests.sim.loop import Stuck, VirtualLoop


def test_time_jumps_to_what_is_due() -> None:
    """Hours of waiting cost nothing, and callbacks of one time run in the order in which they were scheduled."""
    loop = VirtualLoop()
    seen: list[tuple[float, str]] = []

    async def wait(name: str, seconds: float) -> None:
        await asyncio.sleep(seconds)
        seen.append((loop.time(), name))

    async def scenario() -> str:
        await asyncio.gather(wait("b", 7200), wait("a", 3600), wait("c", 7200))
        return "done"

    assert loop.run(scenario()) == "done"
    assert seen == [(3600, "a"), (7200, "b"), (7200, "c")]


def test_time_limits_and_cancellation() -> None:
    """Timeouts, shields, waits and events of asyncio, which the client uses, work."""
    loop = VirtualLoop()

    async def scenario() -> list[object]:
        found: list[object] = []
        event = asyncio.Event()
        loop.call_later(5, event.set)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(3):
                await event.wait()
        found.append(loop.time())
        await asyncio.wait_for(event.wait(), 10)
        found.append(loop.time())
        done, waiting = await asyncio.wait(
            [asyncio.ensure_future(asyncio.sleep(delay)) for delay in (1, 100)], return_when=asyncio.FIRST_COMPLETED
        )
        found += [len(done), len(waiting), loop.time()]
        return found

    assert loop.run(scenario()) == [3, 5, 1, 1, 6]
    loop.cancel_all()
    assert not loop.problems


def test_a_hang_is_told() -> None:
    """Waiting for a result that cannot come, and running in circles, are reported."""

    async def for_ever() -> None:
        await asyncio.get_running_loop().create_future()

    async def in_circles() -> None:
        for _ in range(10_000):
            await asyncio.sleep(0)

    with pytest.raises(Stuck, match="nothing is due"):
        VirtualLoop().run(for_ever())
    with pytest.raises(Stuck, match="more than 1000 steps"):
        VirtualLoop().run(in_circles(), steps_max=1000)


def test_what_nobody_took_is_told() -> None:
    """A callback that raises ends nothing else, and is a problem of the run."""
    loop = VirtualLoop()
    loop.call_soon(int, "x")
    loop.run(asyncio.sleep(1))
    assert ["ValueError" in problem for problem in loop.problems] == [True]
