"""Tells a policy who there is after newcomers were looked up beside the event loop: a script may take its time.

Event loop, and one thread of its own while something is looked up; none where no resolver is configured.
"""

import asyncio
from concurrent.futures import ThreadPoolExecutor

from bookie.client.contracts import Placement
from bookie.client.placement.placed import PlacedPolicy

__all__ = ["Newcomers"]


class Newcomers:
    """A listener of membership. Changes reach the policy in their order; of those that wait only the last one does."""

    def __init__(self, placement: Placement) -> None:
        self._placement = placement
        self._locations = None
        if isinstance(placement, PlacedPolicy) and placement.locations.asks:
            self._locations = placement.locations
            placement.learns = False
        self._latest: tuple[frozenset[str], frozenset[str]] = (frozenset(), frozenset())
        self._pool = ThreadPoolExecutor(1, "bookie-locations")
        self._task: asyncio.Task[None] | None = None

    def __call__(self, writable: frozenset[str], read_only: frozenset[str]) -> None:
        """They are the ones now."""
        self._latest = writable, read_only
        if self._locations is None:
            self._placement.bookies_changed(writable, read_only)
        elif self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._look_up())

    async def settled(self) -> None:
        """The policy knows what was told last."""
        if self._task is not None:
            await self._task

    def close(self) -> None:
        """The policy is told nothing more; what is being looked up ends by itself. May be called twice."""
        if self._task is not None:
            self._task.cancel()
        self._pool.shutdown(wait=False)

    async def _look_up(self) -> None:
        assert self._locations is not None
        told = None
        while told != self._latest:
            told = self._latest
            writable, read_only = told
            loop = asyncio.get_running_loop()
            await loop.run_in_executor(self._pool, self._locations.learn, writable - read_only)
            self._placement.bookies_changed(writable, read_only)
