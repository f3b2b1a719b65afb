"""Inform a policy of the registered bookies, after the locations of new ones were looked up off the event loop.

It runs on the event loop, and on one thread of its own during a look-up, since a script may be slow. Without a
resolver it needs no thread. A bookie that registers anew is looked up again, since it may have moved.
"""

import asyncio
from concurrent.futures import ThreadPoolExecutor

from bookie.client.contracts import Placement
from bookie.client.placement.hosts import Registered, hosts_of
from bookie.client.placement.placed import PlacedPolicy

__all__ = ["Newcomers"]

RETRY_S = 2.0


class Newcomers:
    """A listener for the registered bookies. Changes reach the policy in order; of several that wait, only the last
    does.
    """

    def __init__(self, placement: Placement, registered: Registered) -> None:
        """`registered` returns what a bookie publishes, where its host is."""
        self._registered = registered
        self._placement = placement
        self._locations = None
        if isinstance(placement, PlacedPolicy) and placement.locations.asks:
            self._locations = placement.locations
            placement.learns = False
        self._latest: tuple[frozenset[str], frozenset[str]] = (frozenset(), frozenset())
        self._retry: asyncio.TimerHandle | None = None
        self._pool = ThreadPoolExecutor(1, "bookie-locations")
        self._task: asyncio.Task[None] | None = None

    def __call__(self, writable: frozenset[str], read_only: frozenset[str]) -> None:
        """Take over the registered bookies."""
        before = self._latest
        self._latest = writable, read_only
        if self._locations is None:
            self._placement.bookies_changed(writable, read_only)
            return
        self._locations.doubt((writable | read_only).difference(*before))
        self._begin()

    async def settled(self) -> None:
        """Wait until the policy knows the registered bookies."""
        if self._task is not None:
            await self._task

    def close(self) -> None:
        """Inform the policy no more; a look-up that is running ends by itself. Further calls do nothing."""
        for running in (self._task, self._retry):
            if running is not None:
                running.cancel()
        self._pool.shutdown(wait=False)

    def _begin(self) -> None:
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._look_up())

    async def _look_up(self) -> None:
        assert self._locations is not None
        loop = asyncio.get_running_loop()
        reported = None
        while reported != self._latest:
            reported = self._latest
            writable, read_only = reported
            new = self._locations.unknown(writable | read_only)
            hosts, unread = await hosts_of(new, self._registered)
            await loop.run_in_executor(self._pool, self._locations.learn, new - (unread - hosts.keys()), hosts)
            self._placement.bookies_changed(writable, read_only)
            if unread:
                self._locations.doubt(unread)
                self._retry = loop.call_later(RETRY_S, self._begin)
