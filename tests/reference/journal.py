"""Journals in plain Python: the slow oracle of `bookie._fast.journal.reader` (docs/formats/journal.md)."""

import struct
from typing import NamedTuple

import crc32c

HEADER = 512
BLOCK = 512
RECORD_MAX = 256 << 20
SEARCH = 1 << 30
MASTER_KEY, FENCE, LAC = -0x1000, -0x2000, -0x8000
MARK = struct.pack(">i", -0x100)
MAGIC = b"BKGC"


class Found(NamedTuple):
    """What a scan finds: (ledger, kind, position, length) of each record, and how it ended."""

    records: list[tuple[int, int, int, int]]
    end: int
    groups: int
    torn: bool
    damaged: bool


def header(version: int = 6, *, grouped: bool = True) -> bytes:
    """Return what a file starts with. Version 1 has nothing."""
    if version == 1:
        return b""
    head = struct.pack(">4si", b"BKLG", version)
    return head if version < 5 else (head + (MAGIC if grouped else b"")).ljust(HEADER, b"\0")


def record(ledger: int, kind: int, rest: bytes = b"") -> bytes:
    """Return `i32 length | ledger | kind | rest`."""
    return struct.pack(">iqq", 16 + len(rest), ledger, kind) + rest


def group(records: bytes, start: int, journal_id: int, alignment: int = 512) -> bytes:
    """Return records and the padding record that closes them."""
    pad = -(start + len(records)) % alignment
    pad += alignment if pad < 32 else 0
    covered = records + MARK + struct.pack(">i", pad - 8)
    fields = struct.pack(">IIq", len(covered), start, journal_id)
    crc = crc32c.crc32c(covered + fields)
    return (covered + MAGIC + struct.pack(">I", crc) + fields).ljust(len(records) + pad, b"\0")


def build(groups: list[bytes], journal_id: int, alignment: int = 512) -> bytes:
    """Return a file of ours with these groups of records."""
    out = header()
    for records in groups:
        out += group(records, len(out), journal_id, alignment)
    return out


def padding(position: int, alignment: int = 512) -> bytes:
    """Return what upstream writes before each flush."""
    pad = -position % alignment
    if pad == 0:
        return b""
    size = pad - 8 if pad >= 8 else alignment - (8 - pad)
    return MARK + struct.pack(">i", size) + bytes(size)


class Torn(Exception):
    """The file ends inside a record."""


class Damage(Exception):
    """No record can look like this."""


class End(Exception):
    """The journal ends here."""


def item(data: bytes, at: int, version: int) -> tuple[bool, int]:
    """Return (is padding, size) of what lies at `at`."""
    if len(data) - at < 4:
        raise Torn if any(data[at:]) else End
    (length,) = struct.unpack(">i", data[at : at + 4])
    if length == 0:
        raise End
    if length == -0x100 and version >= 5:
        if len(data) - at < 8:
            raise Torn
        (length,) = struct.unpack(">i", data[at + 4 : at + 8])
        if not 0 <= length <= RECORD_MAX:
            raise Damage
        return True, 8 + length
    if not 16 <= length <= RECORD_MAX:
        raise Damage
    if len(data) - at < 4 + length:
        raise Torn
    return False, 4 + length


def closes(data: bytes, at: int, journal_id: int) -> tuple[int, bool] | None:
    """Return (group start, is of this journal) when good closing fields lie at `at`."""
    if data[at : at + 4] != MAGIC or len(data) - at < 24:
        return None
    crc, size, start, owner = struct.unpack(">IIIq", data[at + 4 : at + 24])
    if start + size != at or crc32c.crc32c(data[start:at] + data[at + 8 : at + 24]) != crc:
        return None
    return start, owner == journal_id


def read_group(data: bytes, start: int, journal_id: int) -> tuple[list[int], int]:
    """Return the positions of the records of the group at `start`, and where the group ends."""
    if not any(data[start : start + BLOCK]):
        raise End
    at, size, positions, padded = start, 0, [], False
    try:
        while not padded:
            positions.append(at)
            padded, size = item(data, at, 6)
            at += size
    except (End, Damage):
        raise Torn from None
    mark = positions.pop()
    good = closes(data, mark + 8, journal_id) if size >= 32 else None
    if good is None or good[0] != start:
        raise Torn
    if not good[1]:
        raise End
    return positions, at


def group_behind(data: bytes, after: int, limit: int, journal_id: int) -> bool:
    """Return whether a good group of this journal starts after `after`."""
    at = data.find(MAGIC, after)
    while 0 <= at < limit:
        good = closes(data, at, journal_id)
        if good is not None and good[1] and good[0] > after and good[0] % BLOCK == 0:
            return True
        at = data.find(MAGIC, at + 1)
    return False


def scan(data: bytes, journal_id: int) -> Found:
    """Return everything that a replay may use. Raises ValueError when it is no journal."""
    version, at = 1, 0
    found: list[tuple[int, int, int, int]] = []
    groups = end = 0
    grouped = False

    def take(position: int, size: int) -> None:
        found.append((*struct.unpack(">qq", data[position + 4 : position + 20]), position, size - 4))

    try:
        if len(data) < 8:
            raise Torn if any(data) else End
        if data[:4] == b"BKLG":
            (version,) = struct.unpack(">i", data[4:8])
            at = HEADER if version >= 5 else 8
            mark = data[8:12] if len(data) >= 12 and version >= 5 else bytes(4)
            if not 2 <= version <= 6 or mark not in {MAGIC, bytes(4)}:
                raise ValueError("no journal")
            grouped = mark == MAGIC
        while True:
            end = at
            if grouped:
                positions, at = read_group(data, at, journal_id)
                for position in positions:
                    take(position, item(data, position, 6)[1])
                groups += 1
                continue
            padded, size = item(data, at, version)
            if at + size > len(data):
                raise Torn
            if not padded:
                take(at, size)
            at += size
    except (End, Torn, Damage) as stopped:
        limit = end + SEARCH if isinstance(stopped, End) else len(data)
        damaged = group_behind(data, end, limit, journal_id) or isinstance(stopped, Damage)
        return Found(found, end, groups, isinstance(stopped, Torn) and not damaged, damaged)
