"""Verifies an LMDB file page by page without mapping it: meta pages, trees, and that no page is outside the file.

LMDB trusts its file: a missing page ends the process, and a wrong one leads anywhere. Here the file is read with
plain reads, so that damage is found and reported. The checksums of the values are verified too.
"""

import struct
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, NamedTuple

from bookie._fast.base.crc import crc32c
from bookie._fast.index.codec import unpack_fence, unpack_ledger, unpack_next, unpack_run
from bookie._fast.index.doubts import unpack_doubt

__all__ = ["IndexVerified", "is_whole", "older_tables", "table_values", "verify_index"]

PAGE_HEAD = struct.Struct("<QHHHH")
META = struct.Struct("<IIQQ")
TABLE = struct.Struct("<IHHQQQQQ")
NODE = struct.Struct("<HHHH")
MAGIC, VERSION = 0xBEEFC0DE, 1
BRANCH, LEAF, OVERFLOW, META_FLAG = 0x01, 0x02, 0x04, 0x08
BIG, TABLE_NODE = 0x01, 0x02
NO_PAGE = 2**64 - 1
PROBLEMS_MAX = 20
DEPTH_MAX = 64
HEAD_KEY = b"\0"
"""The key of the head of the chain of runs in `locations`; an index of the first version has none."""
CHECKS: dict[bytes, Callable[[bytes, bytes], object]] = {
    b"locations": unpack_run,
    b"ledgers": unpack_ledger,
    b"fences": unpack_fence,
    b"doubts": unpack_doubt,
}
COMMIT_KEY = b"commit"
COMMIT = struct.Struct(">q")
"""The number of the commit, which is all that earlier versions stored."""
SUMMED = struct.Struct(">q3Q")
"""The same and a sum of the checksums of all values of each table but the runs (docs/formats/index.md)."""
COMMIT_BYTES = (COMMIT.size, SUMMED.size + 4, SUMMED.size + 12)
"""The sizes of the value: of the number alone, with the sums and a checksum, and with the time of the commit, too."""
SUMMED_TABLES = (b"ledgers", b"fences", b"doubts")
REQUIRED = (b"locations", b"ledgers")
"""Tables that must exist. Fences came later, and an index that has not been opened since has no table of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexVerified:
    """The result for one data file."""

    path: str
    transaction: int = 0
    """The number of the newest commit."""
    pages: int = 0
    """Pages that the newest commit references."""
    runs: int = 0
    ledgers: int = 0
    problems: tuple[str, ...] = ()
    """The first problems found; empty if the file is sound."""

    @property
    def sound(self) -> bool:
        """Whether every page and every value is valid."""
        return not self.problems


class _Meta(NamedTuple):
    page_bytes: int
    root: int
    last_page: int
    transaction: int


class _Damage(Exception):
    """A page that cannot be followed."""


def verify_index(index: Path) -> IndexVerified:
    """Read all of `data.mdb` in directory `index` once. Damage raises nothing; it is part of the result."""
    path = index / "data.mdb"
    try:
        with path.open("rb", buffering=0) as file:
            return _Walk(path, file).run()
    except OSError as error:
        return IndexVerified(path=str(path), problems=(f"{path} cannot be read: {error.strerror}; rebuild the index",))


def is_whole(index: Path) -> bool:
    """Return whether `data.mdb` begins and ends as its newest commit says. A file that does not may still be sound,
    because LMDB need not write a last page that was freed at once. Raises OSError if the file cannot be read.
    """
    path = index / "data.mdb"
    with path.open("rb", buffering=0) as file:
        return _Walk(path, file).is_whole()


def table_values(index: Path, name: bytes) -> tuple[list[tuple[bytes, bytes]], tuple[str, ...]]:
    """Return (key, value) of everything in one table, and the problems of that table; other tables are not examined."""
    path = index / "data.mdb"
    try:
        with path.open("rb", buffering=0) as file:
            walk = _Walk(path, file)
            return walk.values(name), tuple(walk.problems)
    except OSError as error:
        return [], (f"{path} cannot be read: {error.strerror}; rebuild the index",)


def older_tables(index: Path) -> set[bytes]:
    """Return the tables besides the runs that are of an earlier commit, or have pages of one, if that can be told.

    What such a table says was right once. A table with other damage is not among them, because that explains as well
    why something is missing. If the file cannot be read, there are none.
    """
    path = index / "data.mdb"
    with suppress(OSError), path.open("rb", buffering=0) as file:
        walk = _Walk(path, file)
        meta = walk.newest_meta()
        for name, root, entries in walk.tables(meta.root, meta.transaction) if meta is not None else []:
            if name in SUMMED_TABLES:
                walk.table(name, root, entries)
        return walk.older
    return set()


class _Chain:
    """The keys of a table of runs, each named by the value before it. A table without a head is not checked."""

    def __init__(self) -> None:
        self._chained = False
        self._next: bytes | None = None
        self._known = False

    def holds(self, key: bytes, value: bytes) -> bool:
        """Return whether `key` is the one that the previous value names. Raises ValueError for unreadable values."""
        held = not self._known or self._next == key
        self._chained = self._chained or key == HEAD_KEY
        self._known = False
        if self._chained:
            following = unpack_next(key, value)
            self._next = None if following is None else struct.pack(">qq", *following)
            self._known = True
        return held

    def at_end(self) -> bool:
        """Return whether the last value names no next key."""
        return not self._known or self._next is None


class _Walk:
    def __init__(self, path: Path, file: BinaryIO) -> None:
        self._path = path
        self._file = file
        self._page_bytes = 4096
        self._last = 1
        self._seen: set[int] = set()
        self.problems: list[str] = []
        self._counts = dict.fromkeys(CHECKS, 0)
        self._sums: dict[bytes, int] = {}
        self.older: set[bytes] = set()

    def values(self, name: bytes) -> list[tuple[bytes, bytes]]:
        """Return the keys and values of one table."""
        meta = self.newest_meta()
        found: list[tuple[bytes, bytes]] = []
        for table, root, entries in self.tables(meta.root, meta.transaction) if meta is not None else []:
            if table == name:
                self.table(name, root, entries, found)
        return found

    def is_whole(self) -> bool:
        """Return whether there is a commit, and the file is as long as it says."""
        meta = self.newest_meta()
        return meta is not None and self._path.stat().st_size >= (meta.last_page + 1) * meta.page_bytes

    def run(self) -> IndexVerified:
        """Verify the whole file."""
        meta = self.newest_meta()
        if meta is not None:
            for name, root, entries in self.tables(meta.root, meta.transaction):
                self.table(name, root, entries)
        return IndexVerified(
            path=str(self._path),
            transaction=meta.transaction if meta is not None else 0,
            pages=len(self._seen),
            runs=self._counts[b"locations"],
            ledgers=self._counts[b"ledgers"],
            problems=tuple(self.problems),
        )

    def _tell(self, what: str) -> None:
        if len(self.problems) < PROBLEMS_MAX:
            self.problems.append(f"{self._path}: {what}; rebuild the index")

    def newest_meta(self) -> _Meta | None:
        """Return the newer of the two meta pages, or the intact one if a crash tore the other."""
        found = []
        first = self._meta_at(0)
        for meta in (first, self._meta_at(first.page_bytes if first else self._page_bytes)):
            if meta is not None:
                found.append(meta)
        if not found:
            self._tell("neither of its first two pages is a meta page of LMDB")
        newest = max(found, key=lambda meta: meta.transaction, default=None)
        if newest is not None:
            self._page_bytes, self._last = newest.page_bytes, newest.last_page
        return newest

    def _meta_at(self, offset: int) -> _Meta | None:
        self._file.seek(offset)
        data = self._file.read(PAGE_HEAD.size + META.size + 2 * TABLE.size + 16)
        if len(data) < PAGE_HEAD.size + META.size + 2 * TABLE.size + 16:
            return None
        magic, version, _, _ = META.unpack_from(data, PAGE_HEAD.size)
        free = TABLE.unpack_from(data, PAGE_HEAD.size + META.size)
        main = TABLE.unpack_from(data, PAGE_HEAD.size + META.size + TABLE.size)
        last, transaction = struct.unpack_from("<QQ", data, PAGE_HEAD.size + META.size + 2 * TABLE.size)
        page_bytes = free[0]
        flags = PAGE_HEAD.unpack_from(data)[2]
        if (
            (magic, version) != (MAGIC, VERSION)
            or not flags & META_FLAG
            or page_bytes not in {1 << n for n in range(9, 17)}
        ):
            return None
        return _Meta(page_bytes, main[7], last, transaction)

    def tables(self, root: int, transaction: int) -> list[tuple[bytes, int, int]]:
        """Return name, root page and number of values of each table."""
        found = {}
        for key, value, flags in self._leaves(root):
            if key in CHECKS and flags & TABLE_NODE and len(value) == TABLE.size:
                found[key] = value
            elif key == COMMIT_KEY and not flags and len(value) in COMMIT_BYTES:
                self._commit(value, transaction)
            else:
                self._tell(f"the page {root} names {key!r}, which is no table of an index")
        for name in REQUIRED:
            if name not in found and not self.problems:
                self._tell(f"the table {name.decode()!r} is missing")
        if self.problems:
            found = self._remains(root) | found
        return [(name, TABLE.unpack(value)[7], TABLE.unpack(value)[6]) for name, value in found.items()]

    def _commit(self, value: bytes, transaction: int) -> None:
        """Take the number of the commit and the sums of the tables."""
        (commit,) = COMMIT.unpack_from(value)
        summed = len(value) > COMMIT.size
        if summed:
            _, *sums = SUMMED.unpack_from(value)
            if int.from_bytes(value[-4:], "big") != crc32c(COMMIT_KEY + value[:-4]):
                self._tell("the checksum of the commit's number, sums and time is wrong")
                return
            self._sums = dict(zip(SUMMED_TABLES, sums, strict=True))
        if commit != transaction:
            self.older.update(SUMMED_TABLES if summed else ())
            self._tell(f"the tables are those of commit {commit}, but the newest one is {transaction}")

    def _remains(self, root: int) -> dict[bytes, bytes]:
        """Return the tables of a damaged page of which the name has at most one wrong bit, like `index.guard`."""
        try:
            data = self._read(root, 1)
        except _Damage:
            return {}
        found = {}
        for name in CHECKS:
            wanted = int.from_bytes(name, "big")
            for at in range((len(data) - TABLE.size - len(name)) & ~1, PAGE_HEAD.size, -2):
                if (int.from_bytes(data[at : at + len(name)], "big") ^ wanted).bit_count() <= 1:
                    found[name] = data[at + len(name) : at + len(name) + TABLE.size]
                    break
        return found

    def table(self, name: bytes, root: int, entries: int, out: list[tuple[bytes, bytes]] | None = None) -> None:
        """Verify every value of a table, and their number, and append them to `out`."""
        before, values, share, problems = b"", 0, 0, len(self.problems)
        chain = _Chain()
        for key, value, _ in self._leaves(root):
            values += 1
            share += int.from_bytes(value[:4], "big")
            if out is not None:
                out.append((key, value))
            if key <= before:
                self._tell(f"table {name.decode()!r} is out of order at key {key.hex()}")
            before = key
            try:
                if name == b"locations" and not chain.holds(key, value):
                    self._tell(f"table {name.decode()!r}: the run before key {key.hex()} names another next run")
                if key == HEAD_KEY:
                    continue
                self._counts[name] += 1
                CHECKS[name](key, value)
            except ValueError as error:
                self._tell(f"table {name.decode()!r}, key {key.hex()}: {error}")
        if not chain.at_end():
            self._tell(f"table {name.decode()!r} ends, although its last run names a next one")
        if len(self.problems) > problems:
            return
        if values != entries or self._sums.get(name, share) != share % 2**64:
            many = f"{values} values instead of {entries}" if values != entries else "its values add up to another sum"
            self._tell(f"table {name.decode()!r}: {many}, so a page is of an earlier commit")
            if name in SUMMED_TABLES:
                self.older.add(name)

    def _leaves(self, root: int, depth: int = 0) -> Iterator[tuple[bytes, bytes, int]]:
        """Yield (key, value, flags) of every leaf node, in order. A damaged page is reported and skipped."""
        if root == NO_PAGE:
            return
        try:
            data, flags, nodes = self._page(root, depth)
            for at in nodes:
                low, high, node_flags, key_size = NODE.unpack_from(data, at)
                key = data[at + NODE.size : at + NODE.size + key_size]
                if flags & BRANCH:
                    yield from self._leaves(low | high << 16 | node_flags << 32, depth + 1)
                else:
                    yield key, self._value(data, at + NODE.size + key_size, low | high << 16, node_flags), node_flags
        except (_Damage, struct.error) as error:
            self._tell(str(error))

    def _page(self, number: int, depth: int) -> tuple[bytes, int, list[int]]:
        if depth > DEPTH_MAX or number in self._seen:
            raise _Damage(f"page {number} is referenced twice")
        data = self._read(number, 1)
        stored, _, flags, lower, upper = PAGE_HEAD.unpack_from(data)
        if stored != number or not flags & (BRANCH | LEAF) or not PAGE_HEAD.size <= lower <= upper <= len(data):
            raise _Damage(f"page {number} is not a page of a tree")
        nodes = struct.unpack_from(f"<{(lower - PAGE_HEAD.size) // 2}H", data, PAGE_HEAD.size)
        if not nodes or min(nodes) < upper or max(nodes) + NODE.size > len(data):
            raise _Damage(f"page {number} has a node outside it")
        return data, flags, list(nodes)

    def _value(self, data: bytes, at: int, size: int, flags: int) -> bytes:
        if not flags & BIG:
            if at + size > len(data):
                raise _Damage("a value extends beyond the end of its page")
            return data[at : at + size]
        (number,) = struct.unpack_from("<Q", data, at)
        count = (PAGE_HEAD.size + size + self._page_bytes - 1) // self._page_bytes
        pages = self._read(number, count)
        if PAGE_HEAD.unpack_from(pages)[0] != number or not PAGE_HEAD.unpack_from(pages)[2] & OVERFLOW:
            raise _Damage(f"page {number} does not begin a large value")
        return pages[PAGE_HEAD.size : PAGE_HEAD.size + size]

    def _read(self, number: int, count: int) -> bytes:
        if not 2 <= number <= number + count - 1 <= self._last:
            raise _Damage(f"page {number} is outside the {self._last + 1} pages of the file")
        self._seen.update(range(number, number + count))
        try:
            self._file.seek(number * self._page_bytes)
            data = self._file.read(count * self._page_bytes)
        except OSError as error:  # the disk cannot read this page; what the others say still counts
            raise _Damage(f"page {number} cannot be read: {error.strerror}") from error
        if len(data) < count * self._page_bytes:
            raise _Damage(f"page {number} is beyond the end of the file")
        return data
