"""Copying what lost bookies hold, here and now, ledger by ledger: what an operator does without an auditor. Event loop.

Nothing is marked and nobody else need run. The metadata changes as it does for replicators, by compare-and-set and only
when all copies are acknowledged, so both may be at work on one cluster.
"""

from collections.abc import AsyncIterator
from dataclasses import dataclass

from bookie.client.ledgers.metadata_loop import Known
from bookie.client.replication.contracts import World
from bookie.client.replication.copier import Copier
from bookie.client.replication.fragments import Fragment, fragments
from bookie.client.replication.walking import each_ledger
from bookie.errors import BookKeeperError, ClientClosed, IllegalOperation, NoSuchLedgerMetadata
from bookie.metadata.records.ledger_metadata import LedgerMetadata, LedgerState

__all__ = ["copy_lost", "Outcome", "recover", "refuse_writable"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one ledger. `first_entries`: of the segments that name a lost bookie. `error`: why it failed."""

    ledger: int
    total: int
    """Ledgers that name a lost bookie."""
    state: str
    """`to copy`, `copied`, `whole` (it names none any more), `gone` or `failed`."""
    first_entries: tuple[int, ...]
    error: str = ""


async def recover(
    world: World,
    lost: frozenset[str],
    *,
    ledger: int | None = None,
    skip_open: bool = False,
    dry_run: bool = False,
) -> AsyncIterator[Outcome]:
    """Every ledger that names a bookie of `lost`, or `ledger` alone. An open one is fenced and closed where it must be.

    IllegalOperation while one of `lost` takes writes: it would get new ledgers meanwhile. A ledger that fails stops no
    other.
    """
    if not dry_run:
        refuse_writable(lost, world.cluster.writable)
    found: dict[int, tuple[int, ...]] = {}

    async def visit(one: int, metadata: LedgerMetadata) -> None:
        named = tuple(part.first_entry for part in metadata.segments if lost.intersection(part.bookies))
        if named and (metadata.state is LedgerState.CLOSED or not skip_open):
            found[one] = named

    if ledger is not None:
        await visit(ledger, (await world.metadata.read(ledger)).value)
    else:
        await each_ledger(world.metadata, visit, at_once=world.settings.ledgers_at_once)
    copier = Copier(world)
    for one, named in sorted(found.items()):
        state, error = "to copy", ""
        if not dry_run:
            try:
                state = await copy_lost(world, copier, one, lost, fence=True)
            except ClientClosed:
                raise
            except NoSuchLedgerMetadata:
                state = "gone"
            except BookKeeperError as failure:
                state, error = "failed", str(failure)
        yield Outcome(one, len(found), state, named, error)


def refuse_writable(lost: frozenset[str], writable: frozenset[str]) -> None:
    """IllegalOperation: one of `lost` takes writes, and would get new ledgers while its old ones are copied."""
    if lost & writable:
        raise IllegalOperation(
            f"bookie {', '.join(sorted(lost & writable))} takes writes: stop it, or make it read-only, first"
        )


async def copy_lost(world: World, copier: Copier, ledger: int, lost: frozenset[str], *, fence: bool) -> str:
    """Copy what one ledger has on `lost`: `copied`, `whole` where that is nothing, or `open`.

    `fence`: an open ledger that must be closed for that is fenced and closed; otherwise its last part stays as it is,
    and it is told as `open`. NoSuchLedgerMetadata, and the errors of `Copier.replicate_all`.
    """
    known, bad = await _lost_parts(world, ledger, lost)
    fenced = fence and any(not part.closed for part in bad)
    if fenced:
        await world.ledgers.recover(ledger)
        known, bad = await _lost_parts(world, ledger, lost)
    closed = [part for part in bad if part.closed]
    await copier.replicate_all(known, closed)
    if len(closed) < len(bad):
        return "open"
    return "copied" if bad or fenced else "whole"


async def _lost_parts(world: World, ledger: int, lost: frozenset[str]) -> tuple[Known, list[Fragment]]:
    known = Known(ledger, await world.metadata.read(ledger))
    last = known.metadata.last_entry if known.closed else await world.ledgers.last_confirmed(ledger, known.metadata)
    return known, [part for part in fragments(known.metadata, last) if part.bookie in lost]
