"""Auto-recovery's worker in a modelled world, not replaced; its queue has one ledger."""

import random
from collections.abc import Callable
from typing import cast

from bookie.client.ledgers.context import ClientContext
from bookie.client.ledgers.members import Members
from bookie.client.replication.contracts import Cluster, Environment, Queue
from bookie.client.replication.opening import OpenedLedgers
from bookie.client.replication.settings import RecoverySettings
from bookie.client.replication.worker import ReplicationWorker
from bookie.metadata.records.replication import Claim

__all__ = ["replicate"]


async def replicate(context: ClientContext, ledger: int, patience_s: float) -> None:
    """Mark the ledger whenever bookies come or go, and work on it, until cancelled."""
    cluster, queue = Cluster(), _Queue(ledger)
    cluster.listeners.append(queue.mark_now)
    settings = RecoverySettings(
        open_ledger_grace_s=patience_s, failed_ledger_hold_s=patience_s, backoff_s=patience_s / 10
    )
    world = Environment(
        "replicator",
        cast("Queue", queue),
        context.metadata,
        context.bookies,
        OpenedLedgers(context),
        context.placement,
        cluster,
        context.config,
        settings,
        context.random,
        context.epoch_ms,
    )
    members = Members(context.metadata, cluster.changed)
    await members.start()
    try:
        await ReplicationWorker(world).run()
    finally:
        members.close()


class _Queue:
    """The part of `Queue` that a worker uses: the mark of one ledger, and its lock."""

    def __init__(self, ledger: int) -> None:
        self._ledger = ledger
        self._version = 0
        self._marked = False
        self._locked = False
        self._changed: Callable[[], None] = lambda: None

    def mark_now(self) -> None:
        """Mark the ledger like an auditor that sees bookies come and go."""
        self._version += 1
        self._marked = True
        self._changed()

    async def claim(self, owner: str, random: random.Random, changed: Callable[[], None]) -> Claim | None:
        del owner, random
        self._changed = changed
        if not self._marked or self._locked:
            return None
        self._locked = True
        return Claim(self._ledger, self._version)

    async def finish(self, claim: Claim) -> bool:
        self._locked = False
        self._marked = claim.version != self._version
        self._changed()
        return not self._marked

    async def release(self, claim: Claim) -> None:
        del claim
        self._locked = False
        self._changed()

    async def holds(self, claim: Claim) -> bool:
        del claim
        return self._locked
