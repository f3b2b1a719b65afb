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
    """Calls run in the threads of `store`, which is open; what is watched is told on the event loop."""

    def __init__(self, store: MetadataStore) -> None:
        self._store = store
        self._replication = store.driver.replication

    async def mark(self, ledger: int, missing: Collection[str], now_ms: int | None) -> None:
        """Add to the mark of a ledger."""
        await self._store.run(self._replication.mark, ledger, missing, now_ms)

    async def claim(self, owner: str, random: Random, changed: Callable[[], None]) -> Claim | None:
        """Lock a marked ledger; None: there is none, and `changed` will be called."""
        return await self._store.run(self._replication.claim, owner, random, on_loop(changed))

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
        taking = asyncio.ensure_future(self._store.run(lock.__enter__))
        try:
            yield await asyncio.shield(taking)
        finally:
            await asyncio.shield(self._let_go(lock, taking))

    async def _let_go(self, lock: AbstractContextManager[bool], taking: asyncio.Future[bool]) -> None:
        """Whoever asked for it may have left while it was being taken."""
        await asyncio.wait([taking])
        if not taking.cancelled() and taking.exception() is None:
            await self._store.run(lock.__exit__, None, None, None)

    async def enabled(self) -> bool:
        """Whether the cluster replicates."""
        return await self._store.run(self._replication.enabled)

    async def set_lost_bookie_delay_s(self, seconds: int, *, only_if_unset: bool = False) -> None:
        """How long a bookie may be away; the same value asks for an audit."""
        await self._store.run(self._replication.set_lost_bookie_delay_s, seconds, only_if_unset=only_if_unset)

    def watch_lost_bookie_delay(self, listener: Callable[[int | None], None]) -> Subscription:
        """Told at each write."""
        return self._store.subscribed(self._replication.watch_lost_bookie_delay, listener)

    async def last_check_ms(self, check: Check) -> int | None:
        """When some auditor ran it last."""
        return await self._store.run(self._replication.last_check_ms, check)

    async def set_last_check_ms(self, check: Check, at_ms: int) -> None:
        """For the next auditor."""
        await self._store.run(self._replication.set_last_check_ms, check, at_ms)

    def stand(self, bookie: str, listener: Callable[[bool], None]) -> Subscription:
        """Be a candidate until closed."""
        return self._store.subscribed(partial(self._store.driver.election.stand, bookie), listener)
