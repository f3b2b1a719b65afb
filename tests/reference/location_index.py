"""The location index as a dictionary, and its values packed in plain Python: the oracle of the compiled modules.

`Model` is what a reader should see after each commit; `pack_run` writes the bytes of docs/formats/index.md.
"""

import struct
from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, field

from tests.reference.crc import CASTAGNOLI, crc

SLOTS_MAX = 1024
VALUE_MAX = 654
HEADER = 40
END = (-1, -1)

RunKey = tuple[int, int]


@dataclass(frozen=True)
class Place:
    """The place of one entry on the disk."""

    log_id: int
    offset: int
    length: int


@dataclass
class Model:
    """Entries and ledger records, where the last put of an entry wins."""

    entries: dict[tuple[int, int], Place] = field(default_factory=dict)
    ledgers: dict[int, tuple[bytes, bool, bool, bytes, int]] = field(default_factory=dict)

    def put_run(self, ledger: int, first: int, log_id: int, offset: int, lengths: Sequence[int]) -> None:
        """Put a run. Present slots lie one after another in the log, and a length of 0 is a gap."""
        for entry, length in enumerate(lengths, first):
            if length:
                self.entries[ledger, entry] = Place(log_id, offset, length)
                offset += 4 + length

    def delete_ledger(self, ledger: int) -> None:
        """Delete its record and entries."""
        self.ledgers.pop(ledger, None)
        self.entries = {key: place for key, place in self.entries.items() if key[0] != ledger}

    def relocate(self, ledger: int, size: int, source: tuple[int, int], target: tuple[int, int]) -> int:
        """Move the ledger's records that are wholly in the `size` bytes at `source` to `target`; return their bytes."""
        moved = 0
        for key, place in self.entries.items():
            ahead = place.offset - source[1]
            if key[0] == ledger and place.log_id == source[0] and 0 <= ahead <= size - 4 - place.length:
                self.entries[key] = Place(target[0], target[1] + ahead, place.length)
                moved += 4 + place.length
        return moved

    def ids(self, ledger: int) -> list[int]:
        """Return the entry ids of a ledger, sorted."""
        return sorted(entry for owner, entry in self.entries if owner == ledger)

    def copy(self) -> "Model":
        """Return a snapshot."""
        return deepcopy(self)


def pack_run(
    ledger: int, first: int, log_id: int, offset: int, lengths: Sequence[int], next_run: RunKey | None = None
) -> tuple[bytes, bytes, int]:
    """Return (key, value, slots packed) of the longest prefix that fits one value.

    The rest of the run comes next, or else `next_run`.
    """
    count = min(len(lengths), SLOTS_MAX)
    width = slot_width(lengths[:count])
    if width:
        count = min(count, (VALUE_MAX - HEADER) // width)
    while not lengths[count - 1]:
        count -= 1
    packed = lengths[:count]
    following = next((first + slot for slot in range(count, len(lengths)) if lengths[slot]), None)
    if following is not None:
        next_run = (ledger, following)
    width, base = slot_width(packed), min(filter(None, packed))
    slots = b"".join((length - base + 1 if length else 0).to_bytes(width, "big") for length in packed if width)
    key = struct.pack(">qq", ledger, first)
    body = struct.pack(">BBHIQIqq", 2, width, count, log_id, offset, base, *(next_run or END)) + slots
    return key, struct.pack(">I", crc(CASTAGNOLI, key + body)) + body, count


def pack_whole(
    ledger: int, first: int, log_id: int, offset: int, lengths: Sequence[int], *, next_run: RunKey | None
) -> Iterator[tuple[bytes, bytes]]:
    """Return (key, value) of all the values that a run takes."""
    while lengths:
        key, value, count = pack_run(ledger, first, log_id, offset, lengths, next_run)
        yield key, value
        while count < len(lengths) and not lengths[count]:
            count += 1
        offset += sum(length + 4 for length in lengths[:count] if length)
        first, lengths = first + count, lengths[count:]


def pack_unchained(ledger: int, first: int, log_id: int, offset: int, lengths: Sequence[int]) -> tuple[bytes, bytes]:
    """Return (key, value) as the first version of the format had them. The lengths fit one value."""
    width, base = slot_width(lengths), min(filter(None, lengths))
    slots = b"".join((length - base + 1 if length else 0).to_bytes(width, "big") for length in lengths if width)
    key = struct.pack(">qq", ledger, first)
    body = struct.pack(">BBHIQI", 1, width, len(lengths), log_id, offset, base) + slots
    return key, struct.pack(">I", crc(CASTAGNOLI, key + body)) + body


def pack_head(next_run: RunKey | None = None) -> tuple[bytes, bytes]:
    """Return (key, value) of what names the first run."""
    body = struct.pack(">BBHIQIqq", 2, 0, 0, 0, 0, 0, *(next_run or END))
    return b"\0", struct.pack(">I", crc(CASTAGNOLI, b"\0" + body)) + body


def slot_width(lengths: Sequence[int]) -> int:
    """Return how many bytes hold the largest difference from the least length, plus one.

    It is 0 when all lengths are equal and present.
    """
    present = [length for length in lengths if length]
    span = max(present) - min(present)
    if span == 0 and len(present) == len(lengths):
        return 0
    return ((span + 1).bit_length() + 7) // 8
