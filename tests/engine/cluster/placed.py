"""L11 in a cluster's world: whoever is put into a closed ledger has its entries in the end, and an ack quorum has each
entry of a ledger that was recovered.

No bookie of these worlds loses what it has synced, so that a copy which is missing in the end was never there.
"""

from collections.abc import Iterable, Mapping

from bookie.metadata.records.ledger_metadata import LedgerMetadata, LedgerState
from tests.sim.events import Event

__all__ = ["lacking"]


def lacking(history: Iterable[Event], copies: Mapping[str, Mapping[int, bytes]]) -> list[str]:
    """Return what the bookies that replaced others in finished segments lack, one line for each segment."""
    found: dict[str, None] = {}
    before: LedgerMetadata | None = None
    for event in history:
        if event.what != "stored":
            continue
        now: LedgerMetadata = event.value
        if before is not None and event.number > 0:
            for line in _lacking(event.who, event.ledger, before, now, copies):
                found[line] = None
        before = now
    return list(found)


def _lacking(
    who: str, ledger: int, before: LedgerMetadata, now: LedgerMetadata, copies: Mapping[str, Mapping[int, bytes]]
) -> Iterable[str]:
    if before.state is not LedgerState.CLOSED:
        if before.state is LedgerState.IN_RECOVERY and now.state is LedgerState.CLOSED:
            yield from _below_ack_quorum(who, ledger, now, copies)
        return
    ends = [*(one.first_entry - 1 for one in now.segments[1:]), now.last_entry]
    was = {one.first_entry: one.bookies for one in before.segments}
    for segment, last in zip(now.segments, ends, strict=True):
        old = was.get(segment.first_entry, segment.bookies)
        for index, (gone, name) in enumerate(zip(old, segment.bookies, strict=True)):
            if name == gone:
                continue
            entries = range(segment.first_entry, last + 1)
            own = {entry for entry in entries if (index - entry) % now.ensemble_size < now.write_quorum}
            if missing := sorted(own - copies.get(name, {}).keys()):
                yield f"L11: ledger {ledger}, {who} put {name} in the place of {gone}, and it lacks {missing}"


def _below_ack_quorum(
    who: str, ledger: int, now: LedgerMetadata, copies: Mapping[str, Mapping[int, bytes]]
) -> Iterable[str]:
    """Return the entries that a recovery did not write to an ack quorum; a bookie may fail that joined during it."""
    for entry in range(now.last_entry + 1):
        having = [name for name in now.write_set(entry) if entry in copies.get(name, {})]
        if len(having) < now.ack_quorum:
            yield f"L11: ledger {ledger}, {who} closed it with entry {entry} at {having} only"
