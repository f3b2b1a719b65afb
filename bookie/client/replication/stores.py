"""The queue of marked ledgers without blocking: `contracts.Queue` over a driver of `bookie.metadata`."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Collection
from random import Random
from typing import TypeVar

from bookie.client.bookies.stores import MetadataStore
from bookie.metadata.driver import Subscription
from bookie.metadata.replication import Check, Claim, Mark

__all__ = ["StoredQueue"]

T = TypeVar("T")


class StoredQueue:
    """Calls run in the threads of `store`, which is open; what is watched is told on the event loop."""

    def __init__(self, store: MetadataStore) -> None:
        self._store = store
        self._replication = store.driver.replication
        self._loop = asyncio.get_running_loop()

    async def mark(self, ledger: int, missing: Collection[str], now_ms: int | None) -> None:
        """Add to the mark of a ledger."""
        await self._store.run(self._replication.mark, ledger, missing, now_ms)

    async def marked(self, ledger: int) -> Mark | None:
        """The mark of a ledger."""
        return await self._store.run(self._replication.marked, ledger)

    async def marks(self) -> AsyncIterator[list[Mark]]:
        """All of them, in pieces."""
        pages = self._replication.marks()
        while (page := await self._store.run(next, pages, None)) is not None:
            yield page

    async def claim(self, owner: str, random: Random, changed: Callable[[], None]) -> Claim | None:
        """Lock a marked ledger; None: there is none, and `changed` will be called."""
        told = self._on_loop(lambda _: changed())
        return await self._store.run(self._replication.claim, owner, random, lambda: told(None))

    async def finish(self, claim: Claim) -> bool:
        """Take mark and lock away; False: it was marked anew."""
        return await self._store.run(self._replication.finish, claim)

    async def release(self, claim: Claim) -> None:
        """Take the lock away."""
        await self._store.run(self._replication.release, claim)

    async def holds(self, claim: Claim) -> bool:
        """Whether the lock is still ours."""
        return await self._store.run(self._replication.holds, claim)

    @contextlib.asynccontextmanager
    async def lock(self, ledger: int) -> AsyncIterator[bool]:
        """Hold the lock of a ledger, marked or not; False: somebody has it. It ends with our session at the latest."""
        lock = self._replication.lock(ledger)
        ours = await self._store.run(lock.__enter__)
        try:
            yield ours
        finally:
            await asyncio.shield(self._store.run(lock.__exit__, None, None, None))

    async def holders(self) -> dict[int, str]:
        """Who works on which ledger."""
        return await self._store.run(self._replication.holders)

    async def enabled(self) -> bool:
        """Whether the cluster replicates."""
        return await self._store.run(self._replication.enabled)

    async def lost_bookie_delay_s(self) -> int | None:
        """How long a bookie may be away."""
        return await self._store.run(self._replication.lost_bookie_delay_s)

    async def set_lost_bookie_delay_s(self, seconds: int, *, only_if_unset: bool = False) -> None:
        """Change that; the same value asks for an audit."""
        await self._store.run(self._replication.set_lost_bookie_delay_s, seconds, only_if_unset=only_if_unset)

    def watch_lost_bookie_delay(self, listener: Callable[[int | None], None]) -> Subscription:
        """Told at each write."""
        return _Closing(self._store, self._replication.watch_lost_bookie_delay(self._on_loop(listener)))

    async def last_check_ms(self, check: Check) -> int | None:
        """When some auditor ran it last."""
        return await self._store.run(self._replication.last_check_ms, check)

    async def set_last_check_ms(self, check: Check, at_ms: int) -> None:
        """For the next auditor."""
        await self._store.run(self._replication.set_last_check_ms, check, at_ms)

    def stand(self, bookie: str, listener: Callable[[bool], None]) -> Subscription:
        """Be a candidate until closed."""
        return _Closing(self._store, self._store.driver.election.stand(bookie, self._on_loop(listener)))

    def _on_loop(self, listener: Callable[[T], None]) -> Callable[[T], None]:
        def told(value: T) -> None:
            with contextlib.suppress(RuntimeError):  # the loop was closed: nobody listens
                self._loop.call_soon_threadsafe(listener, value)

        return told


class _Closing:
    """A subscription whose end does not block the event loop."""

    def __init__(self, store: MetadataStore, subscription: Subscription) -> None:
        self._store = store
        self._subscription: Subscription | None = subscription
        self._ending: asyncio.Future[None] | None = None

    def close(self) -> None:
        subscription, self._subscription = self._subscription, None
        if subscription is not None:
            self._ending = asyncio.ensure_future(self._end(subscription))

    async def _end(self, subscription: Subscription) -> None:
        await self._store.run(subscription.close)
