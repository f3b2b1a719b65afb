"""Digest types and keys of a ledger: sealing an entry as it is stored, and opening one that came back.

Values only; any thread. Whole batches are sealed and verified by the compiled modules, which take `Digest.digester`.
"""

import hashlib
import struct
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple, Self

from typing_extensions import Buffer

from bookie._fast.wire import record
from bookie._fast.wire.digest import Digester
from bookie.errors import DigestMismatch

FIXED = struct.Struct(">qqqq")
"""What every entry starts with: ledger, entry, LAC, and the ledger's payload bytes up to and including this entry."""

LAC_PACKET = struct.Struct(">qq")


class DigestType(IntEnum):
    """The numbers of the ledger metadata. HMAC is called MAC in Apache BookKeeper's API."""

    CRC32 = 1
    HMAC = 2
    CRC32C = 3
    DUMMY = 4


class OpenedEntry(NamedTuple):
    """An entry opened: its fields, and a view of its payload in the buffer that it came in."""

    ledger: int
    entry: int
    lac: int
    length: int
    payload: memoryview


@dataclass(frozen=True, slots=True)
class Digest:
    """How the entries of a ledger are protected, and its master key. Built from the password by `Digest.of`."""

    type: DigestType
    master_key: bytes = field(repr=False)
    digester: Digester = field(repr=False)

    @classmethod
    def of(cls, digest_type: DigestType = DigestType.CRC32C, password: bytes = b"") -> Self:
        """The keys that Apache BookKeeper derives from the same type and password."""
        mac_key = hashlib.sha1(b"mac" + password, usedforsecurity=False).digest()
        return cls(digest_type, master_key(password), Digester(digest_type, mac_key))

    @property
    def overhead(self) -> int:
        """Bytes in front of the payload in a stored entry."""
        return FIXED.size + self.digester.size

    def seal(self, ledger: int, entry: int, payload: Buffer, *, lac: int, length: int) -> bytes:
        """The entry as it is stored. `length`: payload bytes of the ledger including this entry."""
        head = FIXED.pack(ledger, entry, lac, length)
        return head + self.digester.sum(head, payload) + bytes(payload)

    def open(self, stored: Buffer, ledger: int, entry: int | None = None) -> OpenedEntry:
        """Verify an entry as stored; DigestMismatch. `entry` None accepts any id (reads of the last entry)."""
        view = memoryview(stored)
        if len(view) < FIXED.size:
            raise DigestMismatch(f"expected an entry of ledger {ledger}, got {len(view)} bytes; read another replica")
        found_ledger, found_entry, lac, length = FIXED.unpack_from(view)
        expected = found_entry if entry is None else entry
        if not record.entry_is_valid(self.digester, view, ledger, expected):
            raise DigestMismatch(
                f"expected ledger {ledger}, entry {expected} with a valid {self.type.name} digest, got ledger"
                f" {found_ledger}, entry {found_entry}; read another replica, or check digest type and password"
            )
        return OpenedEntry(ledger, expected, lac, length, view[self.overhead :])

    def seal_lac(self, ledger: int, lac: int) -> bytes:
        """The explicit-LAC packet of a ledger."""
        packet = LAC_PACKET.pack(ledger, lac)
        return packet + self.digester.sum(packet, b"")

    def open_lac(self, packet: bytes, ledger: int) -> int:
        """The LAC of an explicit-LAC packet; DigestMismatch."""
        head = packet[: LAC_PACKET.size]
        if len(head) < LAC_PACKET.size or packet[LAC_PACKET.size :] != self.digester.sum(head, b""):
            raise DigestMismatch(f"ledger {ledger}: an explicit LAC without a valid {self.type.name} digest")
        found, lac = LAC_PACKET.unpack(head)
        if found != ledger:
            raise DigestMismatch(f"ledger {ledger}: an explicit LAC of ledger {found}; ask another bookie")
        return int(lac)


def master_key(password: bytes) -> bytes:
    """The key that the bookie keeps with a ledger; it does not depend on the digest type."""
    return hashlib.sha1(b"ledger" + password, usedforsecurity=False).digest()
