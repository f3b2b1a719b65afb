"""So many bytes a second, on the event loop's clock."""

import asyncio

__all__ = ["Throttle"]


class Throttle:
    """`bytes_per_s` 0 and below: no limit. What was taken is paid for by whoever takes next."""

    def __init__(self, bytes_per_s: float) -> None:
        self._bytes_per_s = bytes_per_s
        self._free_at = float("-inf")

    async def take(self, count: int) -> None:
        """Wait until what was taken before is paid for, then take `count` bytes."""
        if self._bytes_per_s <= 0:
            return
        now = asyncio.get_running_loop().time()
        start = max(now, self._free_at)
        self._free_at = start + count / self._bytes_per_s
        if start > now:
            await asyncio.sleep(start - now)
