"""Where callers wait: for room in the window of pending adds, and for a limit of entries or bytes per second."""

import asyncio
from collections import deque
from collections.abc import Callable
from itertools import islice
from typing import TypeVar

from bookie.errors import TooManyRequests

__all__ = ["Backpressure", "Caller", "RateLimit"]

T = TypeVar("T")


class Backpressure:
    """Callers that wait until fewer adds are pending; the first to wait goes first, and newcomers wait behind it."""

    def __init__(self, wait_s: float = -1.0, *, in_order: bool = True) -> None:
        """`wait_s` is the longest time to wait in seconds; below 0 there is no limit.

        Without `in_order`, a caller goes on as soon as there is room for it, though others have waited for longer.
        """
        self._wait_s = wait_s
        self._in_order = in_order
        self.waiting: deque[Caller] = deque()
        """Those that wait, including those that were woken and have not tried again yet. Any thread may look whether
        there are any.
        """

    async def turn(self, attempt: Callable[[], T | None]) -> T:
        """Call `attempt` whenever there may be room, until it returns something else than None, and return that.

        Raises TooManyRequests if that takes too long.
        """
        if not (self._in_order and self.waiting) and (result := attempt()) is not None:
            return result
        caller = self.enter()
        try:
            return await self.turn_of(caller, attempt)
        finally:
            self.leave(caller)

    def enter(self) -> "Caller":
        """Join those that wait, behind all others, and return the place. It must `leave`, however its wait ends."""
        caller = Caller()
        self.waiting.append(caller)
        return caller

    async def turn_of(self, caller: "Caller", attempt: Callable[[], T | None]) -> T:
        """Do for a caller that waits what `turn` does for one that has just come."""
        try:
            async with asyncio.timeout(self._wait_s if self._wait_s >= 0 else None):
                while True:
                    first = not self._in_order or self.waiting[0] is caller
                    if first and (result := attempt()) is not None:
                        return result
                    await caller.woken()
        except TimeoutError:
            raise TooManyRequests(
                f"no room for another add within {self._wait_s:g} s: bookies answer too slowly; try again later"
            ) from None

    def leave(self, caller: "Caller") -> None:
        """Give up a place among those that wait."""
        self.waiting.remove(caller)
        caller.left.set_result(None)
        self.made(1)  # it may have been woken for room that it did not take

    async def passed(self) -> None:
        """Wait until all that wait now have got their room or given up."""
        if self.waiting:
            await asyncio.wait([caller.left for caller in self.waiting])

    def made(self, places: int | None = None) -> None:
        """Wake the first `places` callers; None wakes all."""
        for caller in islice(self.waiting, places):
            caller.wake()


class Caller:
    """A caller that waits for its turn."""

    def __init__(self) -> None:
        self._woken = asyncio.get_running_loop().create_future()
        self.left: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Is done when it waits no longer."""

    async def woken(self) -> None:
        """Wait for the next `wake`, or for one since the last return."""
        try:
            await self._woken
        finally:
            self._woken = self._woken.get_loop().create_future()

    def wake(self) -> None:
        """End the wait."""
        if not self._woken.done():
            self._woken.set_result(None)


class RateLimit:
    """A limit of `per_s` units per second, of which `burst` may be taken at once after a pause. 0 and below mean no
    limit. A caller waits until what earlier callers took has used up its time; one that is cancelled takes nothing.
    """

    def __init__(self, per_s: float, burst: float = 1) -> None:
        self._unit_s = 1 / per_s if per_s > 0 else 0.0
        self._saved_s = max(burst - 1, 0) * self._unit_s
        self._due = float("-inf")
        self._first = asyncio.Lock()
        """Held by the caller that waits for its time; the others wait behind it."""

    @property
    def limited(self) -> bool:
        """Whether `take` may wait."""
        return self._unit_s > 0

    async def take(self, count: int = 1) -> None:
        """Wait for the time of `count` units to begin. Without a limit it returns at once."""
        if not self.limited:
            return
        async with self._first:
            wait_s = self._due - asyncio.get_running_loop().time()
            if wait_s > 0:
                await asyncio.sleep(wait_s)
            self.took(count)

    def took(self, count: int) -> None:
        """Take `count` units without waiting; they delay the next caller."""
        if self.limited:
            now = asyncio.get_running_loop().time()
            self._due = max(self._due, now - self._saved_s) + count * self._unit_s
