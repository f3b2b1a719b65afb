"""Parts of ledgers, split and packed into what Spark's tasks read. Pure values; any process.

A task costs some 60 ms, so small ledgers share one, in their order; a large ledger is read by several.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

__all__ = ["pack", "Range"]


@dataclass(frozen=True, slots=True)
class Range:
    """Entries `first` to `end` - 1 of a ledger, with about `nbytes`; `open_end`: and what there is unconfirmed."""

    ledger: int
    first: int
    end: int
    nbytes: int = 0
    open_end: bool = False

    @property
    def count(self) -> int:
        """Entries."""
        return self.end - self.first


def pack(ranges: Iterable[Range], bytes_max: int, count_min: int = 1) -> list[tuple[Range, ...]]:
    """Groups of about `bytes_max` at most, or less so that there are `count_min` of them, if there are so many entries.

    Together they are the ranges, in the same order.
    """
    wanted = [one for one in ranges if one.count > 0 or one.open_end]
    total = sum(one.nbytes for one in wanted)
    limit = max(1, min(bytes_max, -(-total // count_min)))
    groups: list[tuple[Range, ...]] = []
    group: list[Range] = []
    room = limit
    for piece in (piece for one in wanted for piece in _split(one, limit)):
        if group and piece.nbytes > room:
            groups.append(tuple(group))
            group, room = [], limit
        group.append(piece)
        room -= piece.nbytes
    if group:
        groups.append(tuple(group))
    return groups


def _split(one: Range, limit: int) -> Iterable[Range]:
    """A range in equal pieces of `limit` bytes at most; an entry at least."""
    pieces = max(1, min(-(-one.nbytes // limit), one.count))
    edges = [one.first + one.count * k // pieces for k in range(pieces + 1)]
    for k in range(pieces):
        last = k == pieces - 1
        yield replace(
            one,
            first=edges[k],
            end=edges[k + 1],
            nbytes=one.nbytes * (k + 1) // pieces - one.nbytes * k // pieces,
            open_end=one.open_end and last,
        )
