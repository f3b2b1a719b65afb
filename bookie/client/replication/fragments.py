"""What each bookie of a ledger has to hold. Pure functions; any thread.

A *fragment* is what one place of one segment's ensemble holds: every entry of the segment in whose write set it is.
"""

from dataclasses import dataclass

from bookie.metadata.records.ledger_metadata import LedgerMetadata, LedgerState

__all__ = ["Fragment", "fragments", "holds", "last_segment_lacks", "stored_on"]


@dataclass(frozen=True, slots=True)
class Fragment:
    """One place of a segment of entries `first` to `last`.

    `closed`: nobody adds to the segment any more. `stored`: the first and last entry that lie there; None: none does.
    `certain`: the segment is known to hold `first`.
    """

    first: int
    last: int
    index: int
    bookie: str
    closed: bool
    stored: tuple[int, int] | None
    certain: bool = True


def holds(index: int, entry: int, ensemble_size: int, write_quorum: int) -> bool:
    """Whether the bookie at `index` is in the write set of `entry`."""
    return (index - entry) % ensemble_size < write_quorum


def fragments(metadata: LedgerMetadata, lac: int) -> list[Fragment]:
    """Every fragment of a ledger, by segment and place. `lac` is its last entry, if it is closed.

    The last segment of an open ledger counts as one entry long while the LAC lies below; then it is not `certain`.
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
    """The fragments of `bookie` that hold anything."""
    return [one for one in fragments(metadata, lac) if one.bookie == bookie and one.stored is not None]


def last_segment_lacks(metadata: LedgerMetadata, lac: int, alive: frozenset[str]) -> bool:
    """Whether a ledger that is not closed lacks a bookie where its writer may add next, or added last.

    Nothing may be stored there yet; but when more of them fail, nobody could tell any more what was.
    """
    if metadata.state is LedgerState.CLOSED:
        return False
    looked_at = list(metadata.segments[-1:])
    if len(metadata.segments) > 1 and lac < looked_at[0].first_entry - 1:
        looked_at.append(metadata.segments[-2])
    return any(bookie not in alive for segment in looked_at for bookie in segment.bookies)


def _stored(metadata: LedgerMetadata, index: int, first: int, last: int) -> tuple[int, int] | None:
    size, quorum = metadata.ensemble_size, metadata.write_quorum
    start = next((e for e in range(first, min(first + size, last + 1)) if holds(index, e, size, quorum)), None)
    if start is None:
        return None
    end = next(e for e in range(last, last - size, -1) if holds(index, e, size, quorum))
    return start, end
