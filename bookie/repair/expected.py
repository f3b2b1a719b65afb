"""Which entries of a ledger a bookie must hold, and which bookies hold them too, by striping. Pure functions; any
thread.

Entry n goes to the bookies at (n mod E + k) mod E of its segment, for k below the write quorum. So within a segment
only n modulo E matters, and no entry id is examined individually.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bookie.metadata.records.ledger_metadata import LedgerMetadata, LedgerState, Segment

__all__ = ["expected_entries", "ExpectedPart", "in_last_ensemble", "judged_end", "names", "parts_holding"]

PART_ENTRIES = 1 << 18


@dataclass(frozen=True, slots=True)
class ExpectedPart:
    """Entries of one segment that a bookie must hold, in ascending order."""

    segment: Segment
    entries: NDArray[np.int64]
    others: tuple[tuple[str, ...], ...]
    """The other holders of an entry, by its id modulo the ensemble size, in the order in which a reader asks them."""

    def others_of(self, entry: int) -> tuple[str, ...]:
        """Return the other replicas of one entry."""
        return self.others[entry % len(self.others)]


def names(metadata: LedgerMetadata, bookie_id: str) -> bool:
    """Return whether the bookie is in any ensemble."""
    return any(bookie_id in segment.bookies for segment in metadata.segments)


def in_last_ensemble(metadata: LedgerMetadata, bookie_id: str) -> bool:
    """Return whether the bookie stores, or stored, the ledger's newest entries."""
    return bookie_id in metadata.segments[-1].bookies


def judged_end(metadata: LedgerMetadata) -> int:
    """Return one past the last entry that must exist. For an open ledger that is where its last ensemble begins,
    because it is unknown how far that got.
    """
    if metadata.state is LedgerState.CLOSED:
        return metadata.last_entry + 1
    return metadata.segments[-1].first_entry


def expected_entries(metadata: LedgerMetadata, bookie_id: str) -> Iterator[ExpectedPart]:
    """Yield all entries that the bookie must hold, in ascending parts of bounded size."""
    last = judged_end(metadata)
    ends = [min(segment.first_entry, last) for segment in metadata.segments[1:]] + [last]
    for segment, end in zip(metadata.segments, ends, strict=True):
        if bookie_id not in segment.bookies:
            continue
        mine, others = _striping(metadata, segment, bookie_id)
        for first in range(segment.first_entry, end, PART_ENTRIES):
            ids = np.arange(first, min(first + PART_ENTRIES, end), dtype=np.int64)
            wanted = ids[mine[ids % len(others)]]
            if len(wanted):
                yield ExpectedPart(segment, wanted, others)


def parts_holding(
    metadata: LedgerMetadata, bookie_id: str, entries: NDArray[np.int64]
) -> Iterator[tuple[ExpectedPart, NDArray[np.int64]]]:
    """Yield those of `entries` (ascending) that belong to the bookie, by segment, including entries of an open last
    segment, of which the end is unknown. The part has the same entries.
    """
    closed = metadata.state is LedgerState.CLOSED
    last = metadata.last_entry + 1 if closed else np.iinfo(np.int64).max
    starts = [segment.first_entry for segment in metadata.segments]
    for segment, end in zip(metadata.segments, [*starts[1:], last], strict=True):
        if bookie_id not in segment.bookies:
            continue
        mine, others = _striping(metadata, segment, bookie_id)
        inside = entries[(entries >= segment.first_entry) & (entries < min(end, last))]
        inside = inside[mine[inside % len(others)]]
        if len(inside):
            yield ExpectedPart(segment, inside, others), inside


def _striping(
    metadata: LedgerMetadata, segment: Segment, bookie_id: str
) -> tuple[NDArray[np.bool_], tuple[tuple[str, ...], ...]]:
    """Return, by entry id modulo the ensemble size, whether it belongs to the bookie, and which others hold it."""
    sets = [_write_set(segment, rest, metadata.write_quorum) for rest in range(len(segment.bookies))]
    mine = np.array([bookie_id in members for members in sets])
    return mine, tuple(tuple(other for other in members if other != bookie_id) for members in sets)


def _write_set(segment: Segment, rest: int, write_quorum: int) -> tuple[str, ...]:
    size = len(segment.bookies)
    return tuple(segment.bookies[(rest + k) % size] for k in range(write_quorum))
