"""A limit of bytes per second, by the clock of the event loop."""

import asyncio

__all__ = ["Throttle"]


class Throttle:
    """The limit. With `bytes_per_s` of 0 or less there is none. A caller waits for what earlier callers took."""

    def __init__(self, bytes_per_s: float) -> None:
        self._bytes_per_s = bytes_per_s
        self._free_at = float("-inf")

    async def take(self, count: int) -> None:
        """Wait until the bytes taken before have used up their time, then take `count` bytes."""
        if self._bytes_per_s <= 0:
            return
        now = asyncio.get_running_loop().time()
        start = max(now, self._free_at)
        self._free_at = start + count / self._bytes_per_s
        if start > now:
            await asyncio.sleep(start - now)
