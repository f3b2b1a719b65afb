"""Marks of ledger directories: the position in each journal up to which a directory is flushed. Module `last_mark`
writes them.

A mark holds for its own directory only: it says where the replay of that directory begins. The lowest mark of a
journal says which of its files must exist (docs/decisions/0014-a-mark-for-each-directory.md).
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
    """Replay begins at this offset of this journal file; (0, 0) means with everything that the journal holds."""

    file_id: int = 0
    offset: int = 0
    generation: int = 0
    """Increases with each checkpoint that wrote a mark; 0 for a mark of Apache BookKeeper, or none."""


def mark_name(journal: int, journals: int) -> str:
    """Return `lastMark` for a single journal, `lastMark.<index>` for one of several."""
    return "lastMark" if journals == 1 else f"lastMark.{journal}"


def read_mark(path: Path) -> Mark | None:
    """Read a mark. Return None if the file is missing, or too short as a crash of Apache BookKeeper may leave it.

    Raises ValueError if a mark of ours is damaged.
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
        raise ValueError(f"{path} has {len(data)} bytes; a mark has {OURS.size}, or {PLACE.size} by Apache BookKeeper")
    file_id, offset, magic, crc, generation = OURS.unpack(data)
    if magic != MAGIC or crc != crc32c(data[24:], crc32c(data[:20])):
        raise ValueError(f"{path} does not match its checksum")
    return Mark(file_id, offset, generation)


def find_marks(directories: Sequence[Path], journals: int, *, taken_over: bool = False) -> list[list[Mark]]:
    """Return, for each journal, the mark of each `current` ledger directory. A mark that cannot be read counts as (0,
    0).

    Replaying everything is safe then, because no journal file is deleted before all marks have passed it. With
    `taken_over`, a Java bookie may have written some of the marks; where it fails to write one, it only logs that, so
    its highest mark holds for all directories whose mark is not ours.
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
    """Return the mark in the file, or None if the file is missing or damaged; damage is logged."""
    try:
        return read_mark(path)
    except ValueError as error:
        log.error("a damaged mark is ignored, and the whole journal is replayed", extra={"problem": error})
        return None


def _tell_older(path: Path, mark: Mark | None, newest: Mark | None) -> None:
    if newest is None or (mark is not None and mark[:2] == newest[:2]):
        return
    facts = {"mark": path, "behind": newest.generation - (mark.generation if mark else 0)}
    log.warning("a ledger directory has an older mark than others: its disk was full, or it was restored", extra=facts)
