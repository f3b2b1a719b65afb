"""Which bits are flipped: random bytes of entry logs, of the index, of marks, cookies and journals.

For each byte it is known whether anything must read it: in entry logs what it belongs to, and whether a later copy
of the entry has replaced it; in the index and in journals what the bookie relies on.
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
"""The number of flips of each kind in a hundred."""
HEAD = struct.Struct(">iqq")
LOG_HEADER = 1024
ENTRY_MAX = 1 << 20


@dataclass(frozen=True, slots=True)
class Flip:
    """One bit of a file. `entry` is the (ledger, entry) of the log record that contains it; `part` names what else
    contains it; `live` says whether something must read it.
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
    """Flip the bit; a second call undoes it."""
    fd = os.open(one.path, os.O_RDWR)
    try:
        byte = os.pread(fd, 1, one.offset)[0]
        os.pwrite(fd, bytes([byte ^ 1 << one.bit]), one.offset)
    finally:
        os.close(fd)


@dataclass(slots=True)
class LogTables:
    """The records of a bookie's entry logs as they were written. Each part is read once, before it is damaged."""

    directory: Path
    ends: dict[Path, int] = field(default_factory=dict)
    starts: dict[Path, list[int]] = field(default_factory=dict)
    records: dict[Path, list[tuple[int, int, int]]] = field(default_factory=dict)
    places: dict[tuple[int, int], tuple[Path, int]] = field(default_factory=dict)

    def look(self) -> None:
        """Read what was appended since."""
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
        """Choose a bit of any log, in three of four cases in a record without a later copy."""
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
    """Choose a bit of a file of this kind, except for logs. For journals the bookie must be stopped."""
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
    """Return whether a flipped bit of an index can affect a reader: index not replaced, and page not freed."""
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
        return False  # the page has been rewritten with the right byte


def _in_index(path: Path, rng: random.Random) -> Flip:
    """Choose, alternately, any byte of the file, or one of a part in use, where each part is equally likely."""
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
    """Choose, nine times in ten, a byte that a start replays, and otherwise any byte before the zeros at the end."""
    found = list(replayed(journal, ledgers))
    if found and rng.random() < 0.9:
        ((path, begin, end),) = rng.choices(found, [end - begin for _, begin, end in found])
        return Flip("journals", path, rng.randrange(begin, end), rng.randrange(8), live=True)
    path = rng.choice([path for path in sorted(journal.glob("*.txn")) if _used(path)])
    offset = rng.randrange(_used(path))
    live = any(path == where and begin <= offset < end for where, begin, end in found)
    return Flip("journals", path, offset, rng.randrange(8), live=live)


def _used(path: Path) -> int:
    """Return the offset up to which a file holds anything but preallocated zeros."""
    return len(path.read_bytes().rstrip(b"\0"))
