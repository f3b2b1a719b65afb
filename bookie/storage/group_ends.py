"""Checks at start of the fields that close each group in our journal files (docs/formats/journal.md). Any thread."""

import mmap
import struct
from collections.abc import Iterator
from pathlib import Path

from bookie._fast.base.crc import crc32c

__all__ = ["ends_at", "is_ours", "was_written"]

GROUP_MARK_AT, GROUP_MARK_END, HEADER_BYTES = 8, 12, 512
MAGIC = b"BKGC"
PADDING_PREFIX, PADDING_BYTES = 8, 4
CLOSING = struct.Struct(">i4sIIIq")
"""The length of the padding, then the fields at its beginning that close a group."""
OWNER = struct.Struct(">Iq")
"""The last two of these fields: the offset at which the group starts, and the id of the journal file."""
SUMMED = struct.Struct(">IIq")
"""What the checksum covers after the group's bytes: size, start and file id."""
OWNER_AT = 12
"""Offset of `OWNER` from the magic number."""
CLOSING_WITHIN = 1 << 20
"""The closing fields lie within this distance of a group's end, which is more than the largest alignment."""


def is_ours(path: Path) -> bool:
    """Return whether the header says that each group has closing fields. Files of Apache BookKeeper have none."""
    with path.open("rb") as file:
        return file.read(GROUP_MARK_END)[GROUP_MARK_AT:] == MAGIC


def ends_at(path: Path, file_id: int, offset: int) -> bool:
    """Return whether a group of this journal ends at `offset`, or a Java bookie's file is at least that long."""
    if offset <= HEADER_BYTES or not is_ours(path):
        return path.stat().st_size >= offset
    with path.open("rb") as file:
        begin = max(offset - CLOSING_WITHIN, 0)
        file.seek(begin)
        tail = file.read(offset - begin)
    at = tail.rfind(MAGIC)
    fields = at - PADDING_BYTES
    if len(tail) < offset - begin or at < PADDING_PREFIX or len(tail) - fields < CLOSING.size:
        return False
    padding, _, _, size, start, journal = CLOSING.unpack_from(tail, fields)
    found: tuple[int, int, int] = (begin + at + padding, start + size, journal)
    return found == (offset, begin + at, file_id)


def was_written(path: Path, file_id: int, start: int) -> bool:
    """Return whether the group that begins at `start`, and does not match its checksum, was written completely.

    A group is written from its first byte to its last, and the closing fields come last: if they are present, nothing
    was cut off. Any one of these fields may be damaged itself.
    """
    with path.open("rb") as file:
        if path.stat().st_size <= start:
            return False
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            owner = OWNER.pack(start, file_id)
            return any(
                _close(data, at, file_id, start)
                for needle, before in ((MAGIC, 0), (owner, OWNER_AT))
                for at in _found(data, needle, before, start)
            )


def _found(data: mmap.mmap, needle: bytes, before: int, start: int) -> Iterator[int]:
    at = data.find(needle, start)
    while at >= 0:
        yield at - before
        at = data.find(needle, at + 1)


def _close(data: mmap.mmap, at: int, file_id: int, start: int) -> bool:
    """Return whether at least all but one of the fields at `at` are those of this group.

    A recycled file may hold a group of the journal that used it before in the same place. So, where the file id
    differs, everything before it must match the checksum as computed with our id.
    """
    if at - PADDING_BYTES < start or at - PADDING_BYTES + CLOSING.size > len(data):
        return False
    closing: tuple[int, bytes, int, int, int, int] = CLOSING.unpack_from(data, at - PADDING_BYTES)
    _, magic, crc, size, begin, journal = closing
    right = (magic == MAGIC, start + size == at, begin == start)
    if journal == file_id:
        return sum(right) >= len(right) - 1
    return all(right) and crc == crc32c(SUMMED.pack(size, start, file_id), crc32c(data[start:at]))
