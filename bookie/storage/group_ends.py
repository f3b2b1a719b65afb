"""What closes the groups of a journal file of ours, as a start asks for it (docs/formats/journal.md). Any thread."""

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
"""The length of the padding, and the fields that close a group in it."""
OWNER = struct.Struct(">Iq")
"""Group start and journal id: the last two of them."""
SUMMED = struct.Struct(">IIq")
"""What the checksum covers behind the magic word and itself: size, start and id."""
OWNER_AT = 12
"""From the magic word on."""
CLOSING_WITHIN = 1 << 20
"""Of a group's end; more than the largest alignment."""


def is_ours(path: Path) -> bool:
    """Whether the file says that each of its groups is closed; Apache BookKeeper's do not."""
    with path.open("rb") as file:
        return file.read(GROUP_MARK_END)[GROUP_MARK_AT:] == MAGIC


def ends_at(path: Path, file_id: int, offset: int) -> bool:
    """Whether a group of this journal ends there; of a Java bookie's file, whether it is long enough."""
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
    """Whether the group that begins at `start`, and does not match its checksum, was written up to its end.

    A group is one write, from its first byte to its last, and closing fields come last: where they are, nothing was
    cut short. Any one of them may be damaged itself.
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
    """Whether all but one of the fields at `at` are those of this group.

    A recycled file may hold a group of its journal before in the same place: where the id is another one, all that is
    before it must be what was summed up with ours.
    """
    if at - PADDING_BYTES < start or at - PADDING_BYTES + CLOSING.size > len(data):
        return False
    closing: tuple[int, bytes, int, int, int, int] = CLOSING.unpack_from(data, at - PADDING_BYTES)
    _, magic, crc, size, begin, journal = closing
    right = (magic == MAGIC, start + size == at, begin == start)
    if journal == file_id:
        return sum(right) >= len(right) - 1
    return all(right) and crc == crc32c(SUMMED.pack(size, start, file_id), crc32c(data[start:at]))
