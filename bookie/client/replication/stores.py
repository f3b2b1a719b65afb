"""The queue of marked ledgers without blocking: `contracts.Queue` over a driver of `bookie.metadata`."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import AbstractContextManager
from functools import partial
from random import Random

from bookie.client.bookies.stores import MetadataStore, on_loop
from bookie.metadata.driver import Subscription
from bookie.metadata.records.replication import Check, Claim

__all__ = ["StoredQueue"]


class StoredQueue:
    """The queue. Calls run on the threads of `store`, which is open; listeners are called on the event loop."""

    def __init__(self, store: MetadataStore) -> None:
        self._store = store
        self._replication = store.driver.replication

    async def mark(self, ledger: int, missing: Collection[str], now_ms: int | None) -> None:
        """Mark a ledger, or add to its mark."""
        await self._store.run(self._replication.mark, ledger, missing, now_ms)

    async def claim(self, owner: str, random: Random, changed: Callable[[], None]) -> Claim | None:
        """Lock a marked ledger. If there is none, return None, and call `changed` when there may be one."""
        return await self._store.run(self._replication.claim, owner, random, on_loop(changed))

    async def finish(self, claim: Claim) -> bool:
        """Remove the mark and the lock. Returns False if the ledger was marked again meanwhile."""
        return await self._store.run(self._replication.finish, claim)

    async def release(self, claim: Claim) -> None:
        """Remove the lock."""
        await self._store.run(self._replication.release, claim)

    async def holds(self, claim: Claim) -> bool:
        """Return whether we still hold the lock."""
        return await self._store.run(self._replication.holds, claim)

    @contextlib.asynccontextmanager
    async def lock(self, ledger: int) -> AsyncIterator[bool]:
        """Hold the lock of a ledger, marked or not; yields False if it is locked. It ends with our session at the
        latest.
        """
        lock = self._replication.lock(ledger)
        taking = asyncio.ensure_future(self._store.run(lock.__enter__))
        try:
            yield await asyncio.shield(taking)
        finally:
            await asyncio.shield(self._let_go(lock, taking))

    async def _let_go(self, lock: AbstractContextManager[bool], taking: asyncio.Future[bool]) -> None:
        """Release a lock whose caller may have left while it was being acquired."""
        await asyncio.wait([taking])
        if not taking.cancelled() and taking.exception() is None:
            await self._store.run(lock.__exit__, None, None, None)

    async def enabled(self) -> bool:
        """Return whether replication is enabled in the cluster."""
        return await self._store.run(self._replication.enabled)

    async def set_lost_bookie_delay_s(self, seconds: int, *, only_if_unset: bool = False) -> None:
        """Set how long a bookie may be away. Writing the same value again requests an audit."""
        await self._store.run(self._replication.set_lost_bookie_delay_s, seconds, only_if_unset=only_if_unset)

    def watch_lost_bookie_delay(self, listener: Callable[[int | None], None]) -> Subscription:
        """Call a listener at each write of the delay."""
        return self._store.subscribed(self._replication.watch_lost_bookie_delay, listener)

    async def last_check_ms(self, check: Check) -> int | None:
        """Return when an auditor last ran a check, in milliseconds since 1970."""
        return await self._store.run(self._replication.last_check_ms, check)

    async def set_last_check_ms(self, check: Check, at_ms: int) -> None:
        """Record when a check ran, for the next auditor."""
        await self._store.run(self._replication.set_last_check_ms, check, at_ms)

    def stand(self, bookie: str, listener: Callable[[bool], None]) -> Subscription:
        """Stand for election until the subscription is closed."""
        return self._store.subscribed(partial(self._store.driver.election.stand, bookie), listener)
