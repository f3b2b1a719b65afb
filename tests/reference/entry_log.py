"""Entry logs in plain Python: the slow oracle of `entrylog.writer` and `entrylog.scan` (docs/formats/entry-log.md)."""

import struct
from collections import Counter
from typing import NamedTuple

HEADER = 1024
BLOCK = 4096
RECORD_MAX = 256 << 20
MAP_LEDGERS_MAX = 10_000


class Found(NamedTuple):
    """What a scan finds: (ledger, entry, offset of the length word, length), where it ended, and how."""

    records: list[tuple[int, int, int, int]]
    end: int
    torn: bool


def header(map_offset: int = 0, ledgers: int = 0) -> bytes:
    """Return the first 1024 bytes."""
    return struct.pack(">4siqi", b"BKLO", 1, map_offset, ledgers).ljust(HEADER, b"\0")


def entry(ledger: int, entry_id: int, payload: bytes = b"") -> bytes:
    """Return an entry as clients send it, cut down to what a bookie looks at."""
    return struct.pack(">qq", ledger, entry_id) + payload


def record(data: bytes) -> bytes:
    """Return `u32 length | entry`."""
    return struct.pack(">i", len(data)) + data


def ledgers_map(sizes: dict[int, int]) -> bytes:
    """Return the records that close a log, with ledgers ascending."""
    ledgers = sorted(sizes)
    out = b""
    for at in range(0, len(ledgers), MAP_LEDGERS_MAX):
        part = ledgers[at : at + MAP_LEDGERS_MAX]
        out += struct.pack(">iqqi", 20 + 16 * len(part), -1, -2, len(part))
        out += b"".join(struct.pack(">qq", ledger, sizes[ledger]) for ledger in part)
    return out


def build(entries: list[bytes], *, closed: bool) -> bytes:
    """Return a whole log of these entries."""
    body = b"".join(map(record, entries))
    if not closed:
        return header() + body
    sizes: Counter[int] = Counter()
    for data in entries:
        sizes[struct.unpack(">q", data[:8])[0]] += len(data) + 4
    return header(HEADER + len(body), len(sizes)) + body + ledgers_map(sizes)


def build_direct(flushes: list[list[bytes]], *, zeros: int = 0) -> bytes:
    """Return a log in the direct-I/O layout.

    Each flush fills its last block with 0xF0, and `zeros` bytes of preallocated space follow.
    """
    dummy = (struct.pack(">iq", BLOCK - HEADER - 4, -1)).ljust(BLOCK - HEADER, b"\0")
    out = header() + dummy
    for entries in flushes:
        out += b"".join(map(record, entries))
        out += b"\xf0" * (-len(out) % BLOCK)
    return out + bytes(zeros)


def read_map(data: bytes) -> dict[int, int] | None:
    """Return the ledgers map, or None where a reader has to scan."""
    at, count = struct.unpack(">qi", data[8:20])
    if at == 0 or count == 0:
        return None
    sizes: dict[int, int] = {}
    while at < len(data):
        size, ledger, kind, n = struct.unpack(">iqqi", data[at : at + 24])
        if (ledger, kind, size) != (-1, -2, 20 + 16 * n):
            return None
        for i in range(n):
            key, value = struct.unpack(">qq", data[at + 24 + 16 * i : at + 40 + 16 * i])
            sizes[key] = value
        at += 4 + size
    return sizes if len(sizes) == count else None


def scan(data: bytes) -> Found:
    """Return all entries up to where the log ends, properly or torn. Raises ValueError when it is no entry log."""
    if len(data) < HEADER:
        return Found([], 0, torn=False)
    if data[:4] == bytes(4):
        return Found([], 0, torn=any(data))
    if data[:4] != b"BKLO" or data[4:8] > b"\0\0\0\1":
        raise ValueError("no entry log")
    direct = data[HEADER : HEADER + 12] == struct.pack(">iq", BLOCK - HEADER - 4, -1)
    found: list[tuple[int, int, int, int]] = []
    end = at = BLOCK if direct else HEADER
    while len(data) - at >= 4:
        (size,) = struct.unpack(">i", data[at : at + 4])
        if direct and size < 0 and at % BLOCK:
            at += -at % BLOCK
            continue
        if size == 0:
            return Found(found, end, torn=not direct and any(data[at:]))
        if not 16 <= size <= RECORD_MAX or len(data) - at < 4 + size:
            return Found(found, end, torn=True)
        ledger, entry_id = struct.unpack(">qq", data[at + 4 : at + 20])
        if ledger < -1 or (ledger >= 0 and entry_id < 0):
            return Found(found, end, torn=True)
        if ledger >= 0:
            found.append((ledger, entry_id, at, size))
        at += 4 + size
        end = at
    return Found(found, end, torn=any(data[at:]))
