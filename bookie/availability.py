"""Encode and decode the list of entries of a ledger that a bookie holds, as Apache BookKeeper encodes it on the wire.

    header  64 bytes   i32 version (0) | i32 groups | zeros
    group   24 bytes   i64 first start | i64 last start | i32 size | i32 period      ascending by first start

This is the payload of a response to GET_LIST_OF_ENTRIES_OF_LEDGER. All integers are big-endian. A group stands for
runs of `size` consecutive entry ids that start at first, first + period, ..., last. Apache BookKeeper's encoder and
`encode` write one group with period 0 for each maximal run. `encode_periodic` uses periods, for lists that would
otherwise not fit into a frame. Both implementations read groups of any period.
"""

from bisect import bisect_right
from collections.abc import Iterable
from typing import Self

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer

__all__ = ["AvailableEntries", "encode", "encode_periodic", "LAST_ID"]

VERSION = 0
HEADER_BYTES = 64
LAST_ID = (1 << 63) - 1
GROUP = np.dtype([("first", ">i8"), ("last", ">i8"), ("size", ">i4"), ("period", ">i4")])


def encode(ranges: Iterable[tuple[int, int]]) -> bytes:
    """Encode a list of entries with one group per range.

    Args:
        ranges: Ranges (first, last) of entry ids, both inclusive, ascending, with gaps between them.

    Returns:
        The encoded list: 64 bytes, and 24 for each range.
    """
    return _pack(np.array([(first, first, last - first + 1, 0) for first, last in ranges], dtype=GROUP))


def encode_periodic(ranges: Iterable[tuple[int, int]]) -> bytes:
    """Encode a list of entries with fewer groups, by merging ranges of one size that repeat at a constant distance.

    The list of a striped ledger becomes a few groups this way. Apache BookKeeper reads this form but never writes it,
    so use it only for lists that `encode` makes too large for a frame.

    Args:
        ranges: Ranges (first, last) of entry ids, both inclusive, ascending, with gaps between them.

    Returns:
        The encoded list.
    """
    found: list[tuple[int, int, int, int]] = []
    for first, last in ranges:
        size = last - first + 1
        if found and found[-1][2] == size and found[-1][3] in {0, first - found[-1][1]}:
            start, before, _, _ = found[-1]
            found[-1] = (start, first, size, first - before)
        else:
            found.append((first, first, size, 0))
    return _pack(np.array(found, dtype=GROUP))


def _pack(groups: NDArray[np.void]) -> bytes:
    header = np.zeros(HEADER_BYTES // 4, dtype=">i4")
    header[:2] = VERSION, len(groups)
    return header.tobytes() + groups.tobytes()


class AvailableEntries:
    """The entries of a ledger that a bookie holds: a decoded list, which supports `entry in available`."""

    def __init__(self, groups: NDArray[np.void]) -> None:
        self._groups = groups
        self._firsts = groups["first"].tolist()

    @classmethod
    def decode(cls, data: Buffer) -> Self:
        """Decode a list of entries.

        Args:
            data: The payload of the response.

        Returns:
            The decoded list.

        Raises:
            ValueError: The list has an unknown version, or its bytes violate the format.
        """
        raw = memoryview(data)
        if len(raw) < HEADER_BYTES:
            raise ValueError(f"a list of entries has at least {HEADER_BYTES} bytes, this one has {len(raw)}")
        version, count = np.frombuffer(raw, ">i4", 2).tolist()
        if version != VERSION:
            raise ValueError(f"the list of entries has version {version}; only version {VERSION} is supported")
        if count < 0 or len(raw) - HEADER_BYTES != count * GROUP.itemsize:
            raise ValueError(f"the list of entries announces {count} groups but has {len(raw)} bytes")
        groups = np.frombuffer(raw, GROUP, count, HEADER_BYTES)
        first, last, size, period = (groups[name].astype(np.int64) for name in GROUP.names or ())
        single = (first == last) & (period == 0)
        several = (period >= size) & (last > first) & ((last - first) % np.maximum(period, 1) == 0)
        fits = (first >= 0) & (size > 0) & (last <= LAST_ID - (size - 1))
        if not (fits & (single | several)).all() or not (np.diff(first) > 0).all():
            raise ValueError(
                "the list of entries has an invalid group: its start, size or period contradict each other"
            )
        return cls(groups)

    def __contains__(self, entry: int) -> bool:
        at = bisect_right(self._firsts, entry) - 1
        if at < 0:
            return False
        first, last, size, period = self._groups[at].tolist()
        if entry >= last + size:
            return False
        return bool((entry - first) % period < size if period else entry - first < size)

    def mask(self, entries: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Tell for each of many entry ids whether the bookie holds it.

        Args:
            entries: Entry ids, an array of shape (n,).

        Returns:
            A boolean array of shape (n,).
        """
        if not len(self._firsts):
            return np.zeros(len(entries), np.bool_)
        first, last, size, period = (self._groups[name].astype(np.int64) for name in GROUP.names or ())
        at = np.searchsorted(first, entries, side="right") - 1
        found = np.maximum(at, 0)
        into = entries - first[found]
        within = np.where(period[found] > 0, into % np.maximum(period[found], 1), into) < size[found]
        # not entries < last + size, which exceeds 64 bits after the last id
        return (at >= 0) & (entries - last[found] < size[found]) & within

    def count(self) -> int:
        """Return the number of entries in the list."""
        first, last, size, period = (self._groups[name].astype(np.int64) for name in GROUP.names or ())
        return int((((last - first) // np.maximum(period, 1) + 1) * size).sum())

    def next_from(self, entry: int) -> int | None:
        """Return the lowest entry id in the list that is at least `entry`, or None."""
        at = bisect_right(self._firsts, entry) - 1
        if entry in self:
            return entry
        if at >= 0:
            first, last, _, period = self._groups[at].tolist()
            if entry < last:
                return int(first + ((entry - first) // period + 1) * period)
        return self._firsts[at + 1] if at + 1 < len(self._firsts) else None

    def last(self) -> int:
        """Return the highest entry id in the list, or -1 if the list is empty."""
        return int((self._groups["last"].astype(np.int64) + (self._groups["size"] - 1)).max()) if self._firsts else -1
