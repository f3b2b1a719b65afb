"""The digest types and keys of a ledger, for sealing entries as they are stored and for opening stored ones.

Everything here is a value that may be used from any thread. Whole batches are sealed and verified by the compiled
modules, which take `Digest.digester`.
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
"""The start of every entry: ledger id, entry id, LAC, and the ledger's payload bytes up to and including this entry."""

LAC_PACKET = struct.Struct(">qq")


class DigestType(IntEnum):
    """The digest types, with their numbers in the ledger metadata. Apache BookKeeper's API calls HMAC `MAC`."""

    CRC32 = 1
    HMAC = 2
    CRC32C = 3
    DUMMY = 4


class OpenedEntry(NamedTuple):
    """A verified entry: the fields of its header, and a view of its payload in the buffer that it came in.

    Attributes:
        ledger: The id of the ledger.
        entry: The id of the entry.
        lac: The LAC when the entry was written.
        length: Payload bytes of the ledger up to and including this entry.
        payload: A view of the payload.
    """

    ledger: int
    entry: int
    lac: int
    length: int
    payload: memoryview


@dataclass(frozen=True, slots=True)
class Digest:
    """How the entries of a ledger are protected, with the ledger's master key. Create it with `Digest.of`.

    Attributes:
        type: The digest type.
        master_key: The key that proves to bookies that a client may write to the ledger.
        digester: The object that computes digests, for the compiled modules.
    """

    type: DigestType
    master_key: bytes = field(repr=False)
    digester: Digester = field(repr=False)

    @classmethod
    def of(cls, digest_type: DigestType = DigestType.CRC32C, password: bytes = b"") -> Self:
        """Derive the keys from a password as Apache BookKeeper does.

        Args:
            digest_type: The digest type of the ledger.
            password: The ledger's password.
        """
        mac_key = hashlib.sha1(b"mac" + password, usedforsecurity=False).digest()
        return cls(digest_type, master_key(password), Digester(digest_type, mac_key))

    @property
    def overhead(self) -> int:
        """The bytes in front of the payload in a stored entry."""
        return FIXED.size + self.digester.size

    def seal(self, ledger: int, entry: int, payload: Buffer, *, lac: int, length: int) -> bytes:
        """Return an entry as it is stored, with header and digest.

        Args:
            ledger: The id of the ledger.
            entry: The id of the entry.
            payload: The payload; it is copied.
            lac: The LAC to store with the entry.
            length: Payload bytes of the ledger up to and including this entry.
        """
        head = FIXED.pack(ledger, entry, lac, length)
        return head + self.digester.sum(head, payload) + bytes(payload)

    def open(self, stored: Buffer, ledger: int, entry: int | None = None) -> OpenedEntry:
        """Verify an entry as stored.

        Args:
            stored: The entry with its header and digest.
            ledger: The id of the ledger that it must belong to.
            entry: The id that it must have; None accepts any id, for reads of the last entry.

        Returns:
            The fields of the entry, with a view of the payload in `stored`.

        Raises:
            DigestMismatch: The entry is of another ledger or has another id, or its digest is wrong.
        """
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
        """Return the packet of an explicit LAC, as it is stored.

        Args:
            ledger: The id of the ledger.
            lac: The LAC.
        """
        packet = LAC_PACKET.pack(ledger, lac)
        return packet + self.digester.sum(packet, b"")

    def open_lac(self, packet: bytes, ledger: int) -> int:
        """Verify the packet of an explicit LAC.

        Args:
            packet: The packet as stored.
            ledger: The id of the ledger that it must belong to.

        Returns:
            The LAC.

        Raises:
            DigestMismatch: The packet is of another ledger, or its digest is wrong.
        """
        head = packet[: LAC_PACKET.size]
        if len(head) < LAC_PACKET.size or packet[LAC_PACKET.size :] != self.digester.sum(head, b""):
            raise DigestMismatch(f"ledger {ledger}: an explicit LAC without a valid {self.type.name} digest")
        found, lac = LAC_PACKET.unpack(head)
        if found != ledger:
            raise DigestMismatch(f"ledger {ledger}: an explicit LAC of ledger {found}; ask another bookie")
        return int(lac)


def master_key(password: bytes) -> bytes:
    """Derive the master key of a ledger from its password. It does not depend on the digest type.

    Args:
        password: The ledger's password.

    Returns:
        20 bytes.
    """
    return hashlib.sha1(b"ledger" + password, usedforsecurity=False).digest()
