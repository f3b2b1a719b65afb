"""Coroutines that run together: the effect of an error of one, and of a cancellation, on the others."""

import asyncio
import contextlib

import pytest

from bookie.client.event_loop.together import together


class Slow:
    """Runs until it is cancelled, then takes two more turns of the loop, and counts its cancellations."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.cancelled = 0
        self.tidied = False

    async def run(self) -> None:
        """Run until cancelled."""
        try:
            self.begun.set()
            await asyncio.Event().wait()
        finally:
            self.cancelled += 1
            for _ in range(2):
                try:
                    await asyncio.sleep(0)
                except asyncio.CancelledError:
                    self.cancelled += 1
                    raise
            self.tidied = True


async def quick() -> None:
    """Wait, and end at once when cancelled."""
    await asyncio.Event().wait()


def test_an_end_from_outside_is_told_once() -> None:
    """The first coroutine to end does not cancel the other a second time."""

    async def scenario() -> None:
        slow = Slow()
        task = asyncio.ensure_future(together([quick(), slow.run()]))
        await slow.begun.wait()
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        assert (slow.cancelled, slow.tidied, task.cancelled()) == (1, True, True)

    asyncio.run(scenario())


def test_an_error_ends_all() -> None:
    """An error is raised after the others have cleaned up."""

    async def scenario() -> None:
        slow = Slow()

        async def fail() -> None:
            await slow.begun.wait()
            raise ValueError("no more")

        with pytest.raises(ValueError, match="no more"):
            await together([slow.run(), fail()])
        assert (slow.cancelled, slow.tidied) == (1, True)

    asyncio.run(scenario())


def test_all_are_waited_for() -> None:
    """The end of one ends no other; no coroutines at all need no wait."""

    async def scenario() -> None:
        seen = []

        async def turns(count: int) -> None:
            for _ in range(count):
                await asyncio.sleep(0)
            seen.append(count)

        await together([turns(3), turns(0), turns(7)])
        await together([])
        assert seen == [0, 3, 7]

    asyncio.run(scenario())
