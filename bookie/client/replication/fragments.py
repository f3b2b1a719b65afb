"""Which entries each bookie of a ledger must hold. Pure functions; any thread.

A *fragment* is what one place of a segment's ensemble holds: every entry of the segment whose write set contains it.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bookie.metadata.records.ledger_metadata import LedgerMetadata, LedgerState

__all__ = ["Fragment", "fragments", "held", "holds", "missing_from_tail", "stored_on"]


@dataclass(frozen=True, slots=True)
class Fragment:
    """One place of a segment that has the entries `first` to `last`.

    Attributes:
        first: The first entry of the segment.
        last: The last entry of the segment.
        index: The place in the ensemble.
        bookie: The bookie at this place.
        closed: Whether no more entries can be added to the segment.
        stored: The first and the last entry at this place, or None if there are none.
        certain: Whether the segment is known to have entry `first`.
    """

    first: int
    last: int
    index: int
    bookie: str
    closed: bool
    stored: tuple[int, int] | None
    certain: bool = True


def holds(index: int, entry: int, ensemble_size: int, write_quorum: int) -> bool:
    """Return whether the bookie at `index` is in the write set of `entry`."""
    return (index - entry) % ensemble_size < write_quorum


def held(part: Fragment, entries: NDArray[np.int64], metadata: LedgerMetadata) -> NDArray[np.bool_]:
    """Compute `holds` for many entries."""
    return (part.index - entries) % metadata.ensemble_size < metadata.write_quorum


def fragments(metadata: LedgerMetadata, lac: int) -> list[Fragment]:
    """Return every fragment of a ledger, by segment and place. `lac` is its last entry if it is closed.

    While the LAC is below the last segment of an open ledger, that segment counts as one entry long, and not
    `certain`.
    """
    found: list[Fragment] = []
    closed = metadata.state is LedgerState.CLOSED
    segments = metadata.segments
    tail = segments[-1].first_entry
    for number, segment in enumerate(segments):
        first, certain = segment.first_entry, True
        if number < len(segments) - 1:
            last = segments[number + 1].first_entry - 1
            done = closed or lac >= tail - 1
        else:
            last = lac
            done = closed
            if last < first:
                if closed:
                    continue
                last, certain = first, False
        for index, bookie in enumerate(segment.bookies):
            stored = _stored(metadata, index, first, last)
            found.append(Fragment(first, last, index, bookie, done, stored, certain))
    return found


def stored_on(metadata: LedgerMetadata, bookie: str, lac: int) -> list[Fragment]:
    """Return the fragments of `bookie` that have entries."""
    return [one for one in fragments(metadata, lac) if one.bookie == bookie and one.stored is not None]


def missing_from_tail(metadata: LedgerMetadata, lac: int, alive: frozenset[str]) -> frozenset[str]:
    """Return the bookies that an open ledger lacks where its writer added last, or may add next.

    No entry may be stored there yet; but if more of these bookies fail, nobody could tell which entries were.
    """
    if metadata.state is LedgerState.CLOSED:
        return frozenset()
    looked_at = list(metadata.segments[-1:])
    if len(metadata.segments) > 1 and lac < looked_at[0].first_entry - 1:
        looked_at.append(metadata.segments[-2])
    return frozenset(bookie for segment in looked_at for bookie in segment.bookies) - alive


def _stored(metadata: LedgerMetadata, index: int, first: int, last: int) -> tuple[int, int] | None:
    size, quorum = metadata.ensemble_size, metadata.write_quorum
    start = next((e for e in range(first, min(first + size, last + 1)) if holds(index, e, size, quorum)), None)
    if start is None:
        return None
    end = next(e for e in range(last, last - size, -1) if holds(index, e, size, quorum))
    return start, end
