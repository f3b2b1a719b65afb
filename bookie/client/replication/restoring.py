"""Repair ledgers beside the cluster's auto-recovery: copy what lost bookies held, or write again what live ones lack.

Each ledger is locked like replication workers do it, so that it is copied only once, and nothing is copied while
replication is disabled. There is a pause after a copy to bookies with little free space, so that others go first.
Event loop.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from bookie.client.replication.contracts import Environment
from bookie.client.replication.copier import Copier
from bookie.client.replication.pace import pause_s
from bookie.client.replication.recovering import copy_lost, refuse_writable
from bookie.client.replication.rewriting import Rewriter, Runs
from bookie.errors import BookKeeperError, ClientClosed, NoSuchLedgerMetadata
from bookie.metadata.records.ledger_metadata import LedgerMetadata

__all__ = ["restore", "Restored", "rewrite"]


@dataclass(frozen=True, slots=True)
class Restored:
    """The result for one ledger. `error` is why it is not done."""

    ledger: int
    state: str
    """`copied`, `rewritten`, `complete` or `deleted`; if it is not done, `locked`, `disabled`, `open` or `failed`."""
    entries: int = 0
    bytes: int = 0
    taken_by: tuple[str, ...] = ()
    """The bookies that replaced others, once for each place."""
    paused_ms: int = 0
    error: str = ""


async def restore(
    environment: Environment, ledgers: Sequence[int], lost: frozenset[str], *, fence: bool
) -> AsyncIterator[Restored]:
    """Copy what lost bookies held, one ledger after the other. `fence` is that of `copy_lost`. A ledger that fails
    stops no other.

    Raises IllegalOperation if a bookie of `lost` is writable; it may have come back since it was believed to be lost.
    """
    refuse_writable(lost, environment.cluster.writable)
    copier = Copier(environment)
    async for row in _each(
        environment, ledgers, lambda ledger: copy_lost(environment, copier, ledger, lost, fence=fence)
    ):
        yield row


async def rewrite(environment: Environment, found: Mapping[int, Runs], *, replace: bool) -> AsyncIterator[Restored]:
    """Write entries again to bookies that lack them, or replace these bookies with `replace`, ledger by ledger.

    A ledger that fails stops no other.
    """
    rewriter = Rewriter(environment, Copier(environment), replace=replace)
    async for row in _each(environment, list(found), lambda ledger: rewriter.ledger(ledger, found[ledger])):
        yield row


async def _each(
    environment: Environment, ledgers: Sequence[int], work: Callable[[int], Awaitable[str]]
) -> AsyncIterator[Restored]:
    for ledger in ledgers:
        before = environment.counters.entries, environment.counters.bytes
        taken: tuple[str, ...] = ()
        error = ""
        try:
            state, taken = await _locked(environment, ledger, work)
        except ClientClosed:
            raise
        except NoSuchLedgerMetadata:
            state = "deleted"
        except BookKeeperError as failure:
            state, error = "failed", str(failure)
        pause = max((pause_s(bookie, environment.cluster, environment.config) for bookie in taken), default=0.0)
        entries, copied = environment.counters.entries - before[0], environment.counters.bytes - before[1]
        yield Restored(ledger, state, entries, copied, taken, round(pause * 1000), error)
        await asyncio.sleep(pause)


async def _locked(
    environment: Environment, ledger: int, work: Callable[[int], Awaitable[str]]
) -> tuple[str, tuple[str, ...]]:
    if not await environment.queue.enabled():
        return "disabled", ()
    async with environment.queue.lock(ledger) as ours:
        if not ours:
            return "locked", ()
        before = (await environment.metadata.read(ledger)).value
        state = await work(ledger)
        return state, _taken(before, (await environment.metadata.read(ledger)).value)


def _taken(before: LedgerMetadata, after: LedgerMetadata) -> tuple[str, ...]:
    old = {segment.first_entry: segment.bookies for segment in before.segments}
    return tuple(
        bookie
        for segment in after.segments
        for bookie in segment.bookies
        if segment.first_entry in old and bookie not in old[segment.first_entry]
    )
