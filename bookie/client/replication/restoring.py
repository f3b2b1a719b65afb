"""Mending ledgers beside the cluster's auto-recovery: what lost bookies hold, or live ones lack. Event loop.

Each ledger is locked as replicators lock it, so nobody copies it twice; where replication is switched off, nothing is
copied. Bookies with little room that took copies let the others go first.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from bookie.client.replication.contracts import World
from bookie.client.replication.copier import Copier
from bookie.client.replication.pace import pause_s
from bookie.client.replication.recovering import copy_lost, refuse_writable
from bookie.client.replication.rewriting import Rewriter, Runs
from bookie.errors import BookKeeperError, ClientClosed, NoSuchLedgerMetadata
from bookie.metadata.records.ledger_metadata import LedgerMetadata

__all__ = ["restore", "Restored", "rewrite"]


@dataclass(frozen=True, slots=True)
class Restored:
    """What came of one ledger. `error`: why it is not done."""

    ledger: int
    state: str
    """`copied`, `rewritten`, `whole`, `gone`; not done: `held` by a replicator, `off`, `open`, `failed`."""
    entries: int = 0
    bytes: int = 0
    taken_by: tuple[str, ...] = ()
    """The bookies that took a place, once for each."""
    paused_ms: int = 0
    error: str = ""


async def restore(
    world: World, ledgers: Sequence[int], lost: frozenset[str], *, fence: bool
) -> AsyncIterator[Restored]:
    """One after the other, in their order. `fence` as for `copy_lost`. A ledger that fails stops no other.

    IllegalOperation while one of `lost` takes writes: it may have come back since it was thought to be lost.
    """
    refuse_writable(lost, world.cluster.writable)
    copier = Copier(world)
    async for row in _each(world, ledgers, lambda ledger: copy_lost(world, copier, ledger, lost, fence=fence)):
        yield row


async def rewrite(world: World, found: Mapping[int, Runs], *, replace: bool) -> AsyncIterator[Restored]:
    """What bookies lack, by ledger, written to them again; or they are replaced there. A ledger that fails stops no
    other.
    """
    rewriter = Rewriter(world, Copier(world), replace=replace)
    async for row in _each(world, list(found), lambda ledger: rewriter.ledger(ledger, found[ledger])):
        yield row


async def _each(world: World, ledgers: Sequence[int], work: Callable[[int], Awaitable[str]]) -> AsyncIterator[Restored]:
    for ledger in ledgers:
        before = world.counters.entries, world.counters.bytes
        taken: tuple[str, ...] = ()
        error = ""
        try:
            state, taken = await _locked(world, ledger, work)
        except ClientClosed:
            raise
        except NoSuchLedgerMetadata:
            state = "gone"
        except BookKeeperError as failure:
            state, error = "failed", str(failure)
        pause = max((pause_s(bookie, world.cluster, world.config) for bookie in taken), default=0.0)
        entries, copied = world.counters.entries - before[0], world.counters.bytes - before[1]
        yield Restored(ledger, state, entries, copied, taken, round(pause * 1000), error)
        await asyncio.sleep(pause)


async def _locked(world: World, ledger: int, work: Callable[[int], Awaitable[str]]) -> tuple[str, tuple[str, ...]]:
    if not await world.queue.enabled():
        return "off", ()
    async with world.queue.lock(ledger) as ours:
        if not ours:
            return "held", ()
        before = (await world.metadata.read(ledger)).value
        state = await work(ledger)
        return state, _taken(before, (await world.metadata.read(ledger)).value)


def _taken(before: LedgerMetadata, after: LedgerMetadata) -> tuple[str, ...]:
    old = {segment.first_entry: segment.bookies for segment in before.segments}
    return tuple(
        bookie
        for segment in after.segments
        for bookie in segment.bookies
        if segment.first_entry in old and bookie not in old[segment.first_entry]
    )
