"""Entries and runs of `u32 length | entry` in plain Python: the oracle of the modules record and digest."""

import hashlib
import hmac
import struct
import zlib

from tests.reference.crc import CASTAGNOLI, crc

CRC32, HMAC, CRC32C, DUMMY = 1, 2, 3, 4
SIZES = {CRC32: 8, HMAC: 20, CRC32C: 4, DUMMY: 0}


def digest(kind: int, password: bytes, data: bytes) -> bytes:
    """Return the digest of `data` as it stands in an entry."""
    if kind == CRC32:
        return struct.pack(">Q", zlib.crc32(data))
    if kind == CRC32C:
        return struct.pack(">I", crc(CASTAGNOLI, data))
    if kind == HMAC:
        return hmac.digest(hashlib.sha1(b"mac" + password).digest(), data, "sha1")
    return b""


def seal(kind: int, password: bytes, fields: tuple[int, int, int, int], payload: bytes) -> bytes:
    """Return an entry as it is stored. `fields` are ledger, entry, LAC, length."""
    head = struct.pack(">qqqq", *fields)
    return head + digest(kind, password, head + payload) + payload


def holds(kind: int, password: bytes, entry: bytes, ledger: int, entry_id: int) -> bool:
    """Return whether `entry` is ledger/entry_id with the right digest."""
    edge = 32 + SIZES[kind]
    if len(entry) < edge or struct.unpack_from(">qq", entry) != (ledger, entry_id):
        return False
    return digest(kind, password, entry[:32] + entry[edge:]) == entry[32:edge]


def pack(entries: list[bytes]) -> bytes:
    """Return a run of entries."""
    return b"".join(struct.pack(">I", len(entry)) + entry for entry in entries)


def unpack(run: bytes) -> tuple[list[bytes], bool]:
    """Return the whole entries of a run, and whether it ended with the last of them."""
    entries: list[bytes] = []
    at = 0
    while len(run) - at >= 4:
        (size,) = struct.unpack_from(">I", run, at)
        if size > len(run) - at - 4:
            return entries, False
        entries.append(run[at + 4 : at + 4 + size])
        at += 4 + size
    return entries, at == len(run)
