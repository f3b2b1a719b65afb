"""Ranges of entries, split and packed into the partitions that Spark's tasks read. Pure values; any process.

A task costs about 60 ms, so small ledgers share one, in their order, and a large ledger is read by several.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil

__all__ = ["pack", "Range"]


@dataclass(frozen=True, slots=True)
class Range:
    """Entries `first` to `end` - 1 of a ledger, with about `nbytes` bytes. `open_end` adds the unconfirmed entries
    after them.
    """

    ledger: int
    first: int
    end: int
    nbytes: int = 0
    open_end: bool = False

    @property
    def count(self) -> int:
        """The number of entries."""
        return self.end - self.first


def pack(ranges: Iterable[Range], bytes_max: int, count_min: int = 1) -> list[tuple[Range, ...]]:
    """Pack ranges, in their order, into groups of at most about `bytes_max` bytes.

    Args:
        ranges: the ranges to read.
        bytes_max: the most bytes of a group.
        count_min: make the groups smaller, so that there are this many, if there are enough entries.
    """
    wanted = [one for one in ranges if one.count > 0 or one.open_end]
    total = sum(one.nbytes for one in wanted)
    limit = min(Fraction(bytes_max), Fraction(total, count_min)) or Fraction(1)  # exact, so that no part is missing
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


def _split(one: Range, limit: Fraction) -> Iterable[Range]:
    """Split a range into equal pieces of about `limit` bytes at most, but at least one entry."""
    pieces = max(1, min(ceil(one.nbytes / limit), one.count))
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
