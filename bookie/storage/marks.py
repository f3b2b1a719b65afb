"""Marks of ledger directories: up to where each journal lies in a directory's entry logs. `last_mark` writes them.

A mark is a promise of its own directory and of no other: it says where that directory's replay begins. The lowest mark
of a journal says which of its files must be there (docs/decisions/0014-a-mark-for-each-directory.md).
"""

import logging
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from bookie._fast.base.crc import crc32c

__all__ = ["find_marks", "Mark", "mark_name", "read_mark", "readable_mark"]

log = logging.getLogger(__name__)

PLACE = struct.Struct(">qq")
OURS = struct.Struct(">qq4sIq")
MAGIC = b"BKLM"


class Mark(NamedTuple):
    """Replay begins at this offset of this journal file; 0, 0: with everything that the journal holds."""

    file_id: int = 0
    offset: int = 0
    generation: int = 0
    """Grows with each checkpoint that wrote a mark; 0: written by Apache BookKeeper, or none."""


def mark_name(journal: int, journals: int) -> str:
    """`lastMark` of the only journal, `lastMark.<index>` of one among several."""
    return "lastMark" if journals == 1 else f"lastMark.{journal}"


def read_mark(path: Path) -> Mark | None:
    """What the file says; None without it, and when it is too short, as a crash of Apache BookKeeper leaves it.

    Raises ValueError for a mark of ours that is damaged.
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    if len(data) < PLACE.size:
        return None
    if len(data) == PLACE.size:
        return Mark(*PLACE.unpack(data))
    if len(data) != OURS.size:
        raise ValueError(f"{path} has {len(data)} bytes, a mark has {OURS.size} or, by Apache BookKeeper, {PLACE.size}")
    file_id, offset, magic, crc, generation = OURS.unpack(data)
    if magic != MAGIC or crc != crc32c(data[24:], crc32c(data[:20])):
        raise ValueError(f"{path} does not match its checksum")
    return Mark(file_id, offset, generation)


def find_marks(directories: Sequence[Path], journals: int, *, taken_over: bool = False) -> list[list[Mark]]:
    """The mark of each `current` ledger directory, for each journal. Where none can be read, everything is replayed.

    That is right because no journal file goes before all marks have passed it. `taken_over`: a Java bookie may have
    written some of them, which only logs that it could not write one; its highest mark holds for all of its own.
    """
    found = []
    for journal in range(journals):
        paths = [directory / mark_name(journal, journals) for directory in directories]
        marks = [readable_mark(path) for path in paths]
        if taken_over:
            theirs = max((mark for mark in marks if mark is not None and not mark.generation), default=Mark())
            marks = [theirs if mark is None or not mark.generation else mark for mark in marks]
        newest = max((mark for mark in marks if mark is not None), default=None)
        for path, mark in zip(paths, marks, strict=True):
            _tell_older(path, mark, newest)
        found.append([mark or Mark() for mark in marks])
    return found


def readable_mark(path: Path) -> Mark | None:
    """What the file says; None without it, and when it is damaged, which is told."""
    try:
        return read_mark(path)
    except ValueError as error:
        log.error("a damaged mark is passed over, and all that the journal holds is replayed", extra={"problem": error})
        return None


def _tell_older(path: Path, mark: Mark | None, newest: Mark | None) -> None:
    if newest is None or (mark is not None and mark[:2] == newest[:2]):
        return
    facts = {"mark": path, "behind": newest.generation - (mark.generation if mark else 0)}
    log.warning("a ledger directory is replayed from an older mark than others: it was full, or went back", extra=facts)
