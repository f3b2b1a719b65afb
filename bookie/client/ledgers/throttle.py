"""Where callers wait: for room in the window of pending adds, and for a limit of entries or bytes per second."""

import asyncio
from collections import deque

from bookie.errors import TooManyRequests

__all__ = ["Backpressure", "RateLimit"]


class Backpressure:
    """Callers that wait until fewer adds are pending; the first to wait goes first."""

    def __init__(self, wait_s: float = -1.0) -> None:
        """`wait_s` is the longest time to wait in seconds; below 0 there is no limit."""
        self._wait_s = wait_s
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def wait(self) -> None:
        """Wait until `made` wakes this caller, which then tries again. Raises TooManyRequests if that takes too
        long.
        """
        future = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        try:
            async with asyncio.timeout(self._wait_s if self._wait_s >= 0 else None):
                await future
        except TimeoutError:
            raise TooManyRequests(
                f"no room for another add within {self._wait_s:g} s: bookies answer too slowly; try again later"
            ) from None

    def made(self, places: int | None = None) -> None:
        """Wake `places` callers; None wakes all."""
        woken = 0
        while self._waiting and (places is None or woken < places):
            future = self._waiting.popleft()
            if not future.done():
                future.set_result(None)
                woken += 1


class RateLimit:
    """A limit of `per_s` units per second, of which `burst` may be taken at once after a pause. 0 and below mean no
    limit. A caller waits until what earlier callers took has used up its time.
    """

    def __init__(self, per_s: float, burst: float = 1) -> None:
        self._unit_s = 1 / per_s if per_s > 0 else 0.0
        self._saved_s = max(burst - 1, 0) * self._unit_s
        self._due = float("-inf")

    @property
    def limited(self) -> bool:
        """Whether `take` may wait."""
        return self._unit_s > 0

    async def take(self, count: int = 1) -> None:
        """Wait for the time of `count` units to begin. Without a limit it returns at once."""
        if not self.limited:
            return
        now = asyncio.get_running_loop().time()
        start = max(self._due, now - self._saved_s)
        self._due = start + count * self._unit_s
        if start > now:
            await asyncio.sleep(start - now)
