"""A channel in V3: what V2 has, and LACs, long polls, deferred sync, and what a bookie tells about itself.

Answers name the transaction of their request, so that requests about the same entry never wait for each other. Streams
of adds take their transactions from ranges of their own: entry e of a stream is transaction base + e.
"""

import itertools

from typing_extensions import Buffer

from bookie._fast.client import framing_v3
from bookie._fast.client.add_window import AddWindow
from bookie.availability import AvailableEntries
from bookie.client.channel.connection import Limits
from bookie.client.channel.operations import BookieChannel, named
from bookie.client.channel.reply import Reply
from bookie.client.channel.stream import AddStream
from bookie.client.entries.batch import StoredBatch
from bookie.client.entries.digest import Digest
from bookie.client.wire import requests_v3 as requests
from bookie.client.wire.answers_v3 import LacAnswer, ReadAnswer
from bookie.client.wire.bookie_space import BookieInfo
from bookie.client.wire.extensions import BATCH_READ, WRITE_CLOSE, Extensions
from bookie.client.wire.flags import MIB, Flags
from bookie.client.wire.request import Row
from bookie.client.wire.security import Link
from bookie.client.wire.v3 import WireV3
from bookie.errors import IllegalOperation, IncorrectParameter
from bookie.pb import wire_pb2 as pb

STREAM_SHIFT = 40
"""Transactions of stream k start at k << 40; single requests count up from 1."""


class ChannelV3(BookieChannel):
    """See `Connection` and `BookieChannel`.

    Set `extensions` to what the bookie advertises; without, batch reads and write closes are refused here.
    """

    protocol = WireV3
    wire: WireV3

    def __init__(self, link: Link, address: str, limits: Limits) -> None:
        super().__init__(link, address, limits)
        self.extensions = Extensions()
        self._stream_numbers = itertools.count(1)

    # --- adds ---------------------------------------------------------------------------------------------------------

    def add_stored_async(
        self, stored: Buffer, master_key: bytes, *, flags: int = 0, deferred_sync: bool = False
    ) -> Reply[None]:
        """Store bytes that are an entry already, header and digest included.

        `deferred_sync`: the answer comes when the entry is written, and only `force` makes it durable.
        """
        ledger, entry = named(stored)
        return self.submit(
            self.wire.add(ledger, entry, stored, master_key, flags, self.timeout_s, deferred_sync=deferred_sync)
        )

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
        deferred_sync: bool = False,
    ) -> AddStream:
        """A stream of adds from entry `first` on, at most `outstanding` unanswered. `deferred_sync`: see above."""
        base = (next(self._stream_numbers) << STREAM_SHIFT) - first
        try:
            window = AddWindow(ledger, first, outstanding, base)
            frames = framing_v3.AddFramerV3(
                digest.digester,
                digest.master_key,
                ledger,
                self.frame_bytes_max,
                base,
                priority=requests.HIGH_PRIORITY if flags & Flags.HIGH_PRIORITY else 0,
                write_flags=requests.DEFERRED_SYNC if deferred_sync else 0,
                recovery=bool(flags & Flags.RECOVERY_ADD),
            )
        except (ValueError, OverflowError) as error:
            raise IncorrectParameter(f"add stream to ledger {ledger}: {error}") from error
        with self.changed:
            self.raise_if_broken()
            self._windows.append(window)
        return AddStream(self, window, frames, lac=lac, length=length)

    def force(self, ledger: int) -> None:
        """Return when every entry of the ledger that was acknowledged before this call is durable. WriteError."""
        self.submit(self.wire.force(ledger, self.timeout_s)).result()

    def write_close(self, ledger: int, master_key: bytes) -> None:
        """Tell the bookie that nothing more will be written; it neither fences nor keeps anybody from writing.

        IllegalOperation when the bookie does not advertise it.
        """
        self._needs(WRITE_CLOSE)
        self.submit(self.wire.write_close(ledger, master_key, self.timeout_s)).result()

    # --- reads --------------------------------------------------------------------------------------------------------

    def read_with_lac(self, ledger: int, entry: int) -> ReadAnswer:
        """An entry as stored, and the highest LAC that the bookie knows. NoSuchLedger, NoSuchEntry, ReadError, …"""
        answer: ReadAnswer = self.submit(self.wire.read(ledger, entry, 0, None, self.timeout_s)).result()
        return answer

    def wait_for_lac(self, ledger: int, previous_lac: int, timeout_ms: int) -> ReadAnswer:
        """Wait at the bookie until its LAC is above `previous_lac`; entry previous_lac + 1 comes along if it is there.

        A fence, or the time's end, ends the wait as well: the answer's LAC then is what it was. NoSuchLedger,
        NoSuchEntry (an empty ledger), ReadError.
        """
        return self.wait_for_lac_async(ledger, previous_lac, timeout_ms).result()

    def wait_for_lac_async(self, ledger: int, previous_lac: int, timeout_ms: int) -> Reply[ReadAnswer]:
        """`wait_for_lac` without waiting here."""
        return self.submit(self.wire.wait_for_lac(ledger, previous_lac, timeout_ms, self.timeout_s))

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
        """`batch_read` without waiting. IllegalOperation when the bookie does not offer it, here or in its answer."""
        self._needs(BATCH_READ)
        return super().batch_read_async(ledger, start, max_count, max_size, flags=flags, master_key=master_key)

    # --- the end of a ledger ------------------------------------------------------------------------------------------

    def write_lac(self, ledger: int, lac: int, *, digest: Digest) -> None:
        """Store an explicit LAC; returns when it is durable. UnauthorizedAccess, BookieReadOnly, WriteError."""
        packet = digest.seal_lac(ledger, lac)
        self.submit(self.wire.write_lac(ledger, lac, packet, digest.master_key, self.timeout_s)).result()

    def read_lac(self, ledger: int) -> LacAnswer:
        """The explicit LAC and the last entry, as stored. NoSuchLedger, NoSuchEntry (neither), ReadError."""
        answer: LacAnswer = self.submit(self.wire.read_lac(ledger, self.timeout_s)).result()
        return answer

    # --- the bookie ---------------------------------------------------------------------------------------------------

    def bookie_info(self) -> BookieInfo:
        """Capacity and free space of its disks. ReadError."""
        answer: BookieInfo = self.submit(self.wire.bookie_info(self.timeout_s)).result()
        return answer

    def list_entries(self, ledger: int) -> AvailableEntries:
        """Which entries of the ledger the bookie holds. NoSuchLedger, ReadError; some Java bookies never answer."""
        answer: AvailableEntries = self.submit(self.wire.list_entries(ledger, self.timeout_s)).result()
        return answer

    # --- the protocol -------------------------------------------------------------------------------------------------

    def _answer(self, row: Row, received: memoryview) -> None:
        if row[0] == pb.BATCH_READ_ENTRY and row[1] == pb.EBADREQ:
            self.extensions.withdraw(BATCH_READ)
        super()._answer(row, received)

    def _needs(self, extension: str) -> None:
        if extension not in self.extensions:
            raise IllegalOperation(f"{self.address}: the bookie does not advertise {extension}; do without it")
