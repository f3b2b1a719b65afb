"""Maximal ranges and their encoding, entry by entry: the oracle of store.entry_ranges and bookie.availability."""

import struct
from collections.abc import Iterable


def maximal_ranges(entries: Iterable[int]) -> list[tuple[int, int]]:
    """Return (first, last) of each run of consecutive ids, ascending."""
    found: list[tuple[int, int]] = []
    for entry in sorted(set(entries)):
        if found and found[-1][1] == entry - 1:
            found[-1] = (found[-1][0], entry)
        else:
            found.append((entry, entry))
    return found


def encode_entries(entries: Iterable[int]) -> bytes:
    """Return the answer to GET_LIST_OF_ENTRIES_OF_LEDGER, with one group for each run."""
    ranges = maximal_ranges(entries)
    groups = [struct.pack(">qqii", first, first, last - first + 1, 0) for first, last in ranges]
    return struct.pack(">ii56x", 0, len(groups)) + b"".join(groups)


def decode_entries(data: bytes) -> set[int]:
    """Return all ids, with periods spelt out."""
    found: set[int] = set()
    for at in range(64, len(data), 24):
        first, last, size, period = struct.unpack_from(">qqii", data, at)
        for start in range(first, last + 1, period or 1):
            found.update(range(start, start + size))
    return found
