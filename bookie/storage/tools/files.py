"""A bookie's files by kind, and where the next start begins to replay. Reads names and marks; changes nothing."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bookie.storage.marks import mark_name, readable_mark

__all__ = ["DiskFile", "last_marks", "list_files", "MarkFound"]

KINDS: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (kind, re.compile(pattern))
    for kind, pattern in (
        ("entry log", r"[0-9a-f]{1,16}\.log"),
        ("compaction", r"[0-9a-f]{1,16}\.log\.(compacting|[0-9a-f]{1,16}\.compacted)"),
        ("journal", r"[0-9a-f]{1,16}\.txn"),
        ("spare journal", r".*\.(preparing|spare)"),
        ("cookie", r"VERSION"),
        ("mark", r"lastMark(\.[0-9]+)?"),
        ("last log id", r"lastId"),
        ("dirty marker", r"DIRTY"),
        ("status", r"BOOKIE_STATUS"),
        ("times of collections", r"GC_TIMES"),
        ("index", r"locations\.lmdb/(data|lock)\.mdb"),
        ("unfinished index", r"locations\.lmdb\.new/(data|lock)\.mdb"),
        ("index of a Java bookie", r"(locations|ledgers|metadata-cache)/.*|[0-9a-f]+/[0-9a-f]+/[0-9a-f]+\.(idx|rloc)"),
    )
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskFile:
    """A file in the directories of a bookie."""

    path: str
    kind: str
    """`other` for an unknown name."""
    bytes: int
    """The length of the file."""
    disk_bytes: int
    """The space that it occupies, including reserved blocks, but not holes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkFound:
    """A journal's mark in one ledger directory."""

    path: str
    journal: int
    file_id: int | None
    """None if the file is missing, too short or damaged."""
    offset: int | None
    counts: bool
    """Whether it is the lowest mark of its journal, from which the replay begins."""
    generation: int = 0
    """Increases with each checkpoint; 0 if Apache BookKeeper wrote the mark."""


def list_files(directories: Sequence[Path]) -> Iterator[DiskFile]:
    """Yield every file below the `current` directories of journals, ledgers and indexes, once each, sorted by name."""
    for directory in dict.fromkeys(directories):
        for path in sorted(directory.rglob("*")):
            if path.is_file() and not path.is_symlink():
                status = path.stat()
                name = path.relative_to(directory).as_posix()
                kind = next((kind for kind, pattern in KINDS if pattern.fullmatch(name)), "other")
                yield DiskFile(path=str(path), kind=kind, bytes=status.st_size, disk_bytes=status.st_blocks * 512)


def last_marks(ledgers: Sequence[Path], journals: int = 1) -> list[MarkFound]:
    """Return the mark of each `current` ledger directory for each journal, with the journals in configured order."""
    found = []
    for journal in range(journals):
        paths = [directory / mark_name(journal, journals) for directory in ledgers]
        marks = [readable_mark(path) for path in paths]
        lowest = min((mark[:2] for mark in marks if mark is not None), default=None)
        for path, mark in zip(paths, marks, strict=True):
            file_id, offset, generation = mark or (None, None, 0)
            counts = mark is not None and mark[:2] == lowest
            found.append(
                MarkFound(
                    path=str(path),
                    journal=journal,
                    file_id=file_id,
                    offset=offset,
                    counts=counts,
                    generation=generation,
                )
            )
    return found
