"""Which bits are flipped: bytes of entry logs, of the index, of marks, cookies and journals, chosen at random.

Of each byte it is known whether anybody has to read it: of entry logs what it belongs to, and whether a later copy of
the entry has taken its place; of the index and of journals what the bookie leans on.
"""

import os
import random
import struct
from bisect import bisect_right
from dataclasses import dataclass, field
from pathlib import Path

from tests.crash.flips.index_pages import stretches
from tests.crash.flips.journal_groups import replayed

__all__ = ["change", "choose", "Flip", "is_there", "LogTables", "SHARES"]

SHARES = {"logs": 50, "index": 40, "journals": 4, "marks": 2, "cookies": 4}
"""Of a hundred flips, so many are of each kind."""
HEAD = struct.Struct(">iqq")
LOG_HEADER = 1024
ENTRY_MAX = 1 << 20


@dataclass(frozen=True, slots=True)
class Flip:
    """One bit of a file. `entry`: (ledger, entry) of the log record that it is in; `part`: what else it is of; `live`:
    somebody has to read it.
    """

    kind: str
    path: Path
    offset: int
    bit: int
    entry: tuple[int, int] | None = None
    live: bool = False
    part: str = ""
    inode: int = 0
    was: int = 0


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
        """A bit of any log: three of four in a record without a later copy; damaged marks have much written again."""
        paths = {path: path.stat().st_size for path, end in self.ends.items() if path.exists() and end > LOG_HEADER}
        if rng.random() < 0.75:
            path, start = rng.choice([place for place in self.places.values() if place[0] in paths])
            size = 4 + self.records[path][bisect_right(self.starts[path], start) - 1][2]
            offset = rng.randrange(start, start + size)
        else:
            (path,) = rng.choices(list(paths), list(paths.values()))
            offset = rng.randrange(min(paths[path], self.ends[path] + 64))
        place = bisect_right(self.starts[path], offset) - 1
        if place < 0 or offset >= self.starts[path][place] + 4 + self.records[path][place][2]:
            return Flip("logs", path, offset, rng.randrange(8))
        ledger, entry, _ = self.records[path][place]
        live = self.places[ledger, entry] == (path, self.starts[path][place])
        return Flip("logs", path, offset, rng.randrange(8), (ledger, entry), live)


def choose(kind: str, bookie: Path, rng: random.Random) -> Flip:
    """A bit of a file of this kind; not for logs. For journals nothing runs there."""
    ledgers, journal = bookie / "ledgers" / "current", bookie / "journal" / "current"
    if kind == "index":
        return _in_index(ledgers / "locations.lmdb" / "data.mdb", rng)
    if kind == "journals":
        return _in_journal(journal, ledgers, rng)
    if kind == "marks":
        path = rng.choice(sorted(ledgers.glob("lastMark*")))
    else:
        path = rng.choice([ledgers / "VERSION", journal / "VERSION"])
    return Flip(kind, path, rng.randrange(path.stat().st_size), rng.randrange(8), live=True)


def is_there(one: Flip) -> bool:
    """Whether a bit of an index that was flipped is still in the way of whoever reads it: neither was the index
    replaced, nor the page given up.
    """
    with one.path.open("rb") as file:
        if os.fstat(file.fileno()).st_ino != one.inode:
            return False
        data = bytearray(file.read())
    if len(data) <= one.offset or data[one.offset] != one.was ^ 1 << one.bit:
        return False
    data[one.offset] = one.was  # only a sound file can be walked
    try:
        return any(each.begin <= one.offset < each.end for each in stretches(bytes(data)))
    except (struct.error, RecursionError):
        return False  # the page is another one by now, in which this byte was right


def _in_index(path: Path, rng: random.Random) -> Flip:
    """Each second one of any byte of the file; the others of each part that is in use as often as of any other."""
    data, inode = path.read_bytes(), path.stat().st_ino
    found = stretches(data)
    if rng.random() < 0.5:
        part = rng.choice(sorted({each.part for each in found}))
        among = [each for each in found if each.part == part]
        (chosen,) = rng.choices(among, [each.end - each.begin for each in among])
        offset = rng.randrange(chosen.begin, chosen.end)
    else:
        offset = rng.randrange(len(data))
        part = next((each.part for each in found if each.begin <= offset < each.end), "")
    bit = rng.randrange(8)
    return Flip("index", path, offset, bit, live=bool(part), part=part, inode=inode, was=data[offset])


def _in_journal(journal: Path, ledgers: Path, rng: random.Random) -> Flip:
    """Nine of ten in what a start replays, one anywhere up to where a file holds anything but zeros."""
    found = list(replayed(journal, ledgers))
    if found and rng.random() < 0.9:
        ((path, begin, end),) = rng.choices(found, [end - begin for _, begin, end in found])
        return Flip("journals", path, rng.randrange(begin, end), rng.randrange(8), live=True)
    path = rng.choice([path for path in sorted(journal.glob("*.txn")) if _used(path)])
    offset = rng.randrange(_used(path))
    live = any(path == where and begin <= offset < end for where, begin, end in found)
    return Flip("journals", path, offset, rng.randrange(8), live=live)


def _used(path: Path) -> int:
    """Up to where a file holds anything but the zeros that were written ahead."""
    return len(path.read_bytes().rstrip(b"\0"))
