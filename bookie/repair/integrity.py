"""The data integrity check of one bookie: finds the entries that it lacks of every ledger in the metadata, and copies
them.

The bookie runs and is queried over channels like any other, so the check may run beside it or anywhere else. Ledgers
that are not closed are checked only up to their last ensemble. Those that have the bookie in their last ensemble are
reported, because they must be recovered before they are trusted (`distrust`). Nothing is deleted, and no metadata is
written.
"""

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from bookie.availability import AvailableEntries
from bookie.client import BookieChannel, ChannelV3
from bookie.errors import NoSuchLedger, NoSuchLedgerMetadata, ReadError, UnauthorizedAccess
from bookie.metadata.driver import Ledgers
from bookie.metadata.records.ledger_metadata import LedgerMetadata, LedgerState
from bookie.repair.copying import copy_part, digest_of
from bookie.repair.expected import expected_entries, in_last_ensemble, names
from bookie.repair.peers import Connect, Peers

__all__ = ["check_bookie", "IntegrityReport", "LedgerChecked", "ledgers_of"]

log = logging.getLogger(__name__)

LOST_SHOWN = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerChecked:
    """The result for one ledger."""

    ledger: int
    state: str
    """OPEN, IN_RECOVERY or CLOSED."""
    expected: int
    """Entries that must be here."""
    missing: int
    """Entries of these that were missing."""
    copied: int
    lost: tuple[int, ...]
    """The first entries that no replica could supply."""
    untrusted: bool
    """Not closed, with this bookie in the last ensemble, so the ledger must be recovered."""
    problem: str = ""

    @property
    def whole(self) -> bool:
        """Whether every entry that must be here is here now."""
        return self.missing == self.copied and not self.problem


@dataclass(frozen=True, slots=True, kw_only=True)
class IntegrityReport:
    """The result for all ledgers of a bookie."""

    bookie_id: str
    ledgers: int
    expected: int
    missing: int
    copied: int
    bytes: int
    untrusted: tuple[int, ...]
    incomplete: tuple[LedgerChecked, ...]
    """Ledgers of which something is still missing."""
    unreachable: dict[str, str]
    """Replicas that could not be reached, and why."""

    @property
    def whole(self) -> bool:
        """Whether nothing is missing any more, regardless of the ledgers in `untrusted`."""
        return not self.incomplete


def ledgers_of(store: Ledgers, bookie_id: str) -> Iterator[tuple[int, LedgerMetadata]]:
    """Yield every ledger with this bookie in an ensemble. Ledgers that are deleted meanwhile are skipped."""
    for ids in store.ranges():
        for ledger in ids:
            try:
                metadata = store.read(ledger).value
            except NoSuchLedgerMetadata:
                continue
            if names(metadata, bookie_id):
                yield ledger, metadata


def check_bookie(
    bookie_id: str,
    store: Ledgers,
    *,
    lister: ChannelV3,
    target: BookieChannel | None = None,
    connect: Connect,
    on_ledger: Callable[[LedgerChecked], None] = lambda _: None,
) -> IntegrityReport:
    """Check every ledger of the bookie, and copy missing entries to `target` unless that is None.

    `lister` and `target` are channels to this bookie; `connect` opens channels to the others. `on_ledger` is called
    after each ledger. Raises the errors of the bookie itself.
    """
    total = LedgerTotals()
    incomplete = []
    untrusted = []
    with Peers(connect) as peers:
        for ledger, metadata in ledgers_of(store, bookie_id):
            checked = _check_ledger(bookie_id, ledger, metadata, _Ends(lister, target, peers), total)
            if not checked.whole:
                incomplete.append(checked)
                log.warning(
                    "a ledger is incomplete ledger=%d missing=%d copied=%d", ledger, checked.missing, checked.copied
                )
            if checked.untrusted:
                untrusted.append(ledger)
            on_ledger(checked)
        unreachable = dict(peers.unreachable)
    return IntegrityReport(
        bookie_id=bookie_id,
        ledgers=total.ledgers,
        expected=total.expected,
        missing=total.missing,
        copied=total.copied,
        bytes=total.bytes,
        untrusted=tuple(untrusted),
        incomplete=tuple(incomplete),
        unreachable=unreachable,
    )


@dataclass(slots=True)
class LedgerTotals:
    """Counts that are summed over all ledgers of a check."""

    ledgers: int = 0
    expected: int = 0
    missing: int = 0
    copied: int = 0
    bytes: int = 0


@dataclass(frozen=True, slots=True)
class _Ends:
    """The bookies that a check communicates with."""

    lister: ChannelV3
    target: BookieChannel | None
    peers: Peers


def _check_ledger(
    bookie_id: str, ledger: int, metadata: LedgerMetadata, ends: _Ends, total: LedgerTotals
) -> LedgerChecked:
    problem = ""
    try:
        here: AvailableEntries | None = ends.lister.list_entries(ledger)
    except NoSuchLedger:
        here = None
    except ReadError as error:
        here = None  # copying an entry that exists does no harm
        problem = f"its entries cannot be listed: {error}"
    expected = missing = copied = 0
    lost: list[int] = []
    digest = digest_of(metadata)
    for part in expected_entries(metadata, bookie_id):
        absent = part.entries if here is None else part.entries[~here.mask(part.entries)]
        expected += len(part.entries)
        missing += len(absent)
        if not len(absent) or ends.target is None:
            continue
        try:
            done = copy_part(ledger, digest, part, absent, peers=ends.peers, target=ends.target)
        except UnauthorizedAccess as error:
            problem = f"this bookie has another master key for this ledger: {error}"
            break
        copied += done.copied
        total.bytes += done.bytes
        lost += done.lost
        if done.lost:
            problem = "; ".join(f"{source}: {reason}" for source, reason in done.reasons.items()) or "no other replica"
    total.ledgers += 1
    total.expected += expected
    total.missing += missing
    total.copied += copied
    return LedgerChecked(
        ledger=ledger,
        state=metadata.state.name,
        expected=expected,
        missing=missing,
        copied=copied,
        lost=tuple(lost[:LOST_SHOWN]),
        untrusted=metadata.state is not LedgerState.CLOSED and in_last_ensemble(metadata, bookie_id),
        problem=problem if missing > copied else "",
    )
