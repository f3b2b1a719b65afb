"""Copy the entries of lost bookies at once, ledger by ledger, as an operator does without an auditor. Event loop.

Nothing is marked, and no other process is needed. As with replication workers, the metadata are changed by
compare-and-set, and only after all copies were acknowledged, so both may work on one cluster at the same time.
"""

from collections.abc import AsyncIterator
from dataclasses import dataclass

from bookie.client.ledgers.metadata_loop import Known
from bookie.client.replication.contracts import Environment
from bookie.client.replication.copier import Copier
from bookie.client.replication.fragments import Fragment, fragments
from bookie.client.replication.walking import each_ledger
from bookie.errors import BookKeeperError, ClientClosed, IllegalOperation, NoSuchLedgerMetadata
from bookie.metadata.records.ledger_metadata import LedgerMetadata, LedgerState

__all__ = ["copy_lost", "Outcome", "recover", "refuse_writable"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result for one ledger.

    Attributes:
        ledger: The id of the ledger.
        total: The number of ledgers that have a lost bookie.
        state: `to copy`, `copied`, `complete` (the ledger has no lost bookie any more), `deleted` or `failed`.
        first_entries: The first entries of the segments that have a lost bookie.
        error: Why the ledger failed.
    """

    ledger: int
    total: int
    """The number of ledgers that have a lost bookie."""
    state: str
    """`to copy`, `copied`, `complete` (it has no lost bookie any more), `deleted` or `failed`."""
    first_entries: tuple[int, ...]
    error: str = ""


async def recover(
    environment: Environment,
    lost: frozenset[str],
    *,
    ledger: int | None = None,
    skip_open: bool = False,
    dry_run: bool = False,
) -> AsyncIterator[Outcome]:
    """Copy the entries of lost bookies, for every ledger that has one, or for one ledger only.

    An open ledger is fenced and closed if that is necessary. A ledger that fails stops no other.

    Args:
        environment: What the parts of auto-recovery share.
        lost: The ids of the lost bookies.
        ledger: The id of the only ledger to copy; None means all ledgers.
        skip_open: Leave open ledgers out.
        dry_run: Change nothing, and report what would be copied.

    Yields:
        The result for each ledger.

    Raises:
        IllegalOperation: A bookie of `lost` is writable; it would get new ledgers meanwhile.
    """
    if not dry_run:
        refuse_writable(lost, environment.cluster.writable)
    found: dict[int, tuple[int, ...]] = {}

    async def visit(one: int, metadata: LedgerMetadata) -> None:
        named = tuple(part.first_entry for part in metadata.segments if lost.intersection(part.bookies))
        if named and (metadata.state is LedgerState.CLOSED or not skip_open):
            found[one] = named

    if ledger is not None:
        await visit(ledger, (await environment.metadata.read(ledger)).value)
    else:
        await each_ledger(environment.metadata, visit, at_once=environment.settings.ledgers_at_once)
    copier = Copier(environment)
    for one, named in sorted(found.items()):
        state, error = "to copy", ""
        if not dry_run:
            try:
                state = await copy_lost(environment, copier, one, lost, fence=True)
            except ClientClosed:
                raise
            except NoSuchLedgerMetadata:
                state = "deleted"
            except BookKeeperError as failure:
                state, error = "failed", str(failure)
        yield Outcome(one, len(found), state, named, error)


def refuse_writable(lost: frozenset[str], writable: frozenset[str]) -> None:
    """Raise IllegalOperation if a bookie of `lost` is writable, since it would get new ledgers while old ones are
    copied.
    """
    if lost & writable:
        raise IllegalOperation(
            f"bookie {', '.join(sorted(lost & writable))} is writable: stop it, or make it read-only, first"
        )


async def copy_lost(environment: Environment, copier: Copier, ledger: int, lost: frozenset[str], *, fence: bool) -> str:
    """Copy the entries that one ledger has on `lost`. Returns `copied`, `complete` if there are none, or `open`.

    With `fence`, an open ledger is fenced and closed if that is necessary. Otherwise its last part stays as it is,
    and the result is `open`. Raises NoSuchLedgerMetadata, and the errors of `Copier.replicate_all`.
    """
    known, bad = await _lost_parts(environment, ledger, lost)
    fenced = fence and any(not part.closed for part in bad)
    if fenced:
        await environment.ledgers.recover(ledger)
        known, bad = await _lost_parts(environment, ledger, lost)
    closed = [part for part in bad if part.closed]
    await copier.replicate_all(known, closed)
    if len(closed) < len(bad):
        return "open"
    return "copied" if bad or fenced else "complete"


async def _lost_parts(environment: Environment, ledger: int, lost: frozenset[str]) -> tuple[Known, list[Fragment]]:
    known = Known(ledger, await environment.metadata.read(ledger))
    last = (
        known.metadata.last_entry if known.closed else await environment.ledgers.last_confirmed(ledger, known.metadata)
    )
    return known, [part for part in fragments(known.metadata, last) if part.bookie in lost]
