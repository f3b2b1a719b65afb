"""Which bits are flipped: bytes of entry logs, of the index, of marks, cookies and journals, chosen at random.

Of entry logs it is known what each byte belongs to, and whether a later copy of the entry has taken its place.
"""

import os
import random
import struct
from bisect import bisect_right
from dataclasses import dataclass, field
from pathlib import Path

from bookie.storage.tools.files import last_marks

__all__ = ["change", "choose", "Flip", "KINDS", "LogTables"]

KINDS = ("logs", "index", "marks", "cookies", "journals")
HEAD = struct.Struct(">iqq")
LOG_HEADER = 1024
ENTRY_MAX = 1 << 20


@dataclass(frozen=True, slots=True)
class Flip:
    """One bit of a file. `entry`: (ledger, entry) of the log record that it is in; `live`: there is no later copy."""

    kind: str
    path: Path
    offset: int
    bit: int
    entry: tuple[int, int] | None = None
    live: bool = False


def change(one: Flip) -> None:
    """Change it; a second time changes it back."""
    fd = os.open(one.path, os.O_RDWR)
    try:
        byte = os.pread(fd, 1, one.offset)[0]
        os.pwrite(fd, bytes([byte ^ 1 << one.bit]), one.offset)
    finally:
        os.close(fd)


@dataclass(slots=True)
class LogTables:
    """The records of a bookie's entry logs as they were written: each part of a file is looked at once, undamaged."""

    directory: Path
    ends: dict[Path, int] = field(default_factory=dict)
    starts: dict[Path, list[int]] = field(default_factory=dict)
    records: dict[Path, list[tuple[int, int, int]]] = field(default_factory=dict)
    places: dict[tuple[int, int], tuple[Path, int]] = field(default_factory=dict)

    def look(self) -> None:
        """Take in what was appended since."""
        for path in sorted(self.directory.glob("*.log"), key=lambda path: int(path.stem, 16)):
            at = self.ends.get(path, LOG_HEADER)
            with path.open("rb") as file:
                file.seek(at)
                data = file.read()
            starts, records = self.starts.setdefault(path, []), self.records.setdefault(path, [])
            pos = 0
            while len(data) - pos >= HEAD.size:
                size, ledger, entry = HEAD.unpack_from(data, pos)
                if not 16 <= size <= ENTRY_MAX or ledger < 0 or len(data) - pos - 4 < size:
                    break
                starts.append(at + pos)
                records.append((ledger, entry, size))
                self.places[ledger, entry] = path, at + pos
                pos += 4 + size
            self.ends[path] = at + pos

    def choose(self, rng: random.Random) -> Flip:
        """A bit of any log, each byte as likely as any other."""
        paths = [path for path, end in self.ends.items() if path.exists() and end > LOG_HEADER]
        sizes = [path.stat().st_size for path in paths]
        (path,) = rng.choices(paths, sizes)
        offset = rng.randrange(min(path.stat().st_size, self.ends[path] + 64))
        place = bisect_right(self.starts[path], offset) - 1
        if place < 0 or offset >= self.starts[path][place] + 4 + self.records[path][place][2]:
            return Flip("logs", path, offset, rng.randrange(8))
        ledger, entry, _ = self.records[path][place]
        live = self.places[ledger, entry] == (path, self.starts[path][place])
        return Flip("logs", path, offset, rng.randrange(8), (ledger, entry), live)


def choose(kind: str, bookie: Path, rng: random.Random) -> Flip:
    """A bit of a file of this kind; not for logs."""
    ledgers, journal = bookie / "ledgers" / "current", bookie / "journal" / "current"
    if kind == "index":
        path = ledgers / "locations.lmdb" / "data.mdb"
    elif kind == "marks":
        path = rng.choice(sorted(ledgers.glob("lastMark*")))
    elif kind == "cookies":
        path = rng.choice([ledgers / "VERSION", journal / "VERSION"])
    else:
        path, offset = _in_journal(journal, ledgers, rng)
        return Flip(kind, path, offset, rng.randrange(8))
    return Flip(kind, path, rng.randrange(path.stat().st_size), rng.randrange(8))


def _in_journal(journal: Path, ledgers: Path, rng: random.Random) -> tuple[Path, int]:
    """Mostly behind the mark, which is what a start replays."""
    files = sorted((path for path in journal.glob("*.txn") if _used(path)), key=lambda path: int(path.stem, 16))
    (mark,) = last_marks([ledgers])
    behind = [
        (path, start)
        for path in files
        if (start := (mark.offset or 0) if int(path.stem, 16) == mark.file_id else 0) < _used(path)
        and int(path.stem, 16) >= (mark.file_id or 0)
    ]
    if behind and rng.random() < 0.75:
        path, start = rng.choice(behind)
        return path, rng.randrange(start, _used(path))
    path = rng.choice(files)
    return path, rng.randrange(_used(path))


def _used(path: Path) -> int:
    """Up to where a file holds anything but the zeros that were written ahead."""
    return len(path.read_bytes().rstrip(b"\0"))
