"""What a channel of either protocol can do, for callers who need not know which one it is."""

import struct
from abc import ABC, abstractmethod
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer

from bookie.client.channel.batches import batches
from bookie.client.channel.connection import Connection
from bookie.client.channel.reply import Reply
from bookie.client.channel.stream import AddStream
from bookie.client.entries.batch import StoredBatch
from bookie.client.entries.digest import Digest
from bookie.client.wire.flags import LAST_ENTRY, MIB, Flags
from bookie.errors import NoSuchEntry

ENTRY_NAME = struct.Struct(">qq")


class BookieChannel(Connection, ABC):
    """A `Channel` (V2) or a `ChannelV3`."""

    # --- adds ---------------------------------------------------------------------------------------------------------

    def add(
        self, ledger: int, entry: int, payload: Buffer, *, digest: Digest, lac: int, length: int, flags: int = 0
    ) -> None:
        """Store an entry; returns when it is durable. `length`: payload bytes of the ledger including this entry.

        `flags`: RECOVERY_ADD is let through by a fence. LedgerFenced, UnauthorizedAccess, BookieReadOnly, WriteError, …
        """
        self.add_async(ledger, entry, payload, digest=digest, lac=lac, length=length, flags=flags).result()

    def add_async(
        self, ledger: int, entry: int, payload: Buffer, *, digest: Digest, lac: int, length: int, flags: int = 0
    ) -> Reply[None]:
        """`add` without waiting for the answer."""
        stored = digest.seal(ledger, entry, payload, lac=lac, length=length)
        return self.add_stored_async(stored, digest.master_key, flags=flags)

    def add_stored_async(self, stored: Buffer, master_key: bytes, *, flags: int = 0) -> Reply[None]:
        """Store bytes that are an entry already, header and digest included: a copy from another replica."""
        return self.submit(self.wire.add(*named(stored), stored, master_key, flags, self.timeout_s))

    @abstractmethod
    def add_stream(
        self,
        ledger: int,
        first: int,
        *,
        digest: Digest,
        lac: int = -1,
        length: int = 0,
        outstanding: int = 10_000,
        flags: int = 0,
    ) -> AddStream:
        """A stream of adds from entry `first` on, at most `outstanding` unanswered. One stream per ledger at a time."""

    def add_batch(
        self,
        ledger: int,
        first: int,
        payloads: Buffer,
        offsets: NDArray[np.int64],
        *,
        digest: Digest,
        lac: int = -1,
        length: int = 0,
        outstanding: int = 10_000,
    ) -> AddStream:
        """Store payloads[offsets[k]:offsets[k + 1]] as entry first + k, for every k; returns the finished stream."""
        with self.add_stream(ledger, first, digest=digest, lac=lac, length=length, outstanding=outstanding) as stream:
            stream.append(payloads, offsets)
        return stream

    # --- reads --------------------------------------------------------------------------------------------------------

    def read(self, ledger: int, entry: int, *, flags: int = 0, master_key: bytes | None = None) -> bytes:
        """An entry as stored; `Digest.open` verifies it. NoSuchLedger, NoSuchEntry, ReadError, …"""
        return self.read_async(ledger, entry, flags=flags, master_key=master_key).result()

    def read_async(self, ledger: int, entry: int, *, flags: int = 0, master_key: bytes | None = None) -> Reply[bytes]:
        """`read` without waiting for the answer."""
        request = self.wire.read(ledger, entry, flags, master_key, self.timeout_s)
        request.decode = self.wire.stored
        return self.submit(request)

    def read_last(self, ledger: int) -> bytes:
        """The entry with the highest id that the bookie holds, as stored. NoSuchLedger, NoSuchEntry, ReadError, …"""
        return self.read(ledger, LAST_ENTRY)

    def fence(self, ledger: int, master_key: bytes) -> bytes | None:
        """Refuse all further adds but recovery's; return the last entry as stored, None when there is none."""
        try:
            return self.read(ledger, LAST_ENTRY, flags=Flags.FENCE, master_key=master_key)
        except NoSuchEntry:
            return None

    def batch_read(
        self,
        ledger: int,
        start: int,
        max_count: int = 0,
        max_size: int = MIB,
        *,
        flags: int = 0,
        master_key: bytes | None = None,
    ) -> StoredBatch:
        """Entries from `start` on, one at least. `max_count` <= 0: no count limit; `max_size`: bytes of the answer."""
        return self.batch_read_async(ledger, start, max_count, max_size, flags=flags, master_key=master_key).result()

    def batch_read_async(
        self,
        ledger: int,
        start: int,
        max_count: int = 0,
        max_size: int = MIB,
        *,
        flags: int = 0,
        master_key: bytes | None = None,
    ) -> Reply[StoredBatch]:
        """`batch_read` without waiting for the answer."""
        size = min(max_size, self.frame_bytes_max)
        return self.submit(self.wire.batch_read(ledger, start, max_count, size, flags, master_key, self.timeout_s))

    def batch_read_all(
        self, ledger: int, first: int, last: int, *, max_count: int = 1000, max_size: int = MIB, in_flight: int = 4
    ) -> Iterator[StoredBatch]:
        """All entries from `first` to `last`, in order, with `in_flight` batches on their way. See `batches`."""
        return batches(
            lambda start, count: self.batch_read_async(ledger, start, count, max_size),
            range(first, last + 1),
            max_count=max_count,
            in_flight=in_flight,
        )


def named(stored: Buffer) -> tuple[int, int]:
    """Ledger and id of an entry as stored; zeros where it is too short to name any."""
    head = memoryview(stored)[: ENTRY_NAME.size]
    return ENTRY_NAME.unpack(head) if len(head) == ENTRY_NAME.size else (0, 0)
