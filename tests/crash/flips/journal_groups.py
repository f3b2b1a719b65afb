"""Which bytes of a journal the next start relies on: those after the mark, in groups of that journal."""

import struct
from collections.abc import Iterator
from pathlib import Path

from bookie._fast.journal.reader import scan_journal
from bookie.storage.tools.files import last_marks

__all__ = ["replayed"]

HEADER = 512
HEADER_USED = 12
PADDING = -0x100
CLOSED = 32
"""Bytes of a padding record up to the end of the fields that close a group; zeros follow."""


def replayed(journal: Path, ledgers: Path) -> Iterator[tuple[Path, int, int]]:
    """Yield (file, begin, end) of bytes that the next start reads. The bookie must be stopped and its files intact."""
    (mark,) = last_marks([ledgers])
    for path in sorted(journal.glob("*.txn"), key=lambda path: int(path.stem, 16)):
        file_id = int(path.stem, 16)
        if file_id < (mark.file_id or 0):
            continue
        start = max(mark.offset or 0, HEADER) if file_id == mark.file_id else HEADER
        data = path.read_bytes()
        end = scan_journal(path, file_id, start).end
        if end > start:
            yield path, 0, HEADER_USED
        while start < end:
            size, more = struct.unpack_from(">ii", data, start)
            used, whole = (CLOSED, 8 + more) if size == PADDING else (4 + size, 4 + size)
            yield path, start, start + used
            start += whole
