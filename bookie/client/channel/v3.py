"""A channel in V3: what V2 has, and LACs, long polls, deferred sync, and what a bookie tells about itself.

Answers name the transaction of their request, so that requests about the same entry never wait for each other. Streams
of adds take their transactions from ranges of their own: entry e of a stream is transaction base + e.
"""

import itertools
from collections.abc import Callable
from typing import ClassVar, TypeVar

from typing_extensions import Buffer

from bookie._fast.client import framing_v3
from bookie._fast.client.add_window import AddWindow
from bookie.availability import AvailableEntries
from bookie.client.channel.connection import Limits
from bookie.client.channel.operations import BookieChannel
from bookie.client.channel.reply import Reply
from bookie.client.channel.stream import AddStream
from bookie.client.entries.batch import StoredBatch
from bookie.client.entries.digest import Digest
from bookie.client.wire import answers_v3 as answers
from bookie.client.wire import requests_v3 as requests
from bookie.client.wire.answers_v3 import LacAnswer, ReadAnswer
from bookie.client.wire.bookie_space import BookieInfo
from bookie.client.wire.extensions import BATCH_READ, WRITE_CLOSE, Extensions
from bookie.client.wire.flags import LAST_ENTRY, MIB, Flags
from bookie.client.wire.messages import framed
from bookie.client.wire.receive import Cutter
from bookie.client.wire.request import Key, Row
from bookie.client.wire.security import Link
from bookie.errors import (
    BookKeeperError,
    IllegalOperation,
    IncorrectParameter,
    ReadError,
    UnauthorizedAccess,
    WriteError,
    error_from_v3,
)
from bookie.pb import wire_pb2 as pb

T = TypeVar("T")

STREAM_SHIFT = 40
"""Transactions of stream k start at k << 40; single requests count up from 1."""
BAD_REQUEST = 404
FIXED_BYTES = 24


class ChannelV3(BookieChannel):
    """See `Connection` and `BookieChannel`.

    Set `extensions` to what the bookie advertises; without, batch reads and write closes are refused here.
    """

    cutter: ClassVar[Cutter] = staticmethod(framing_v3.cut)
    batch_op: ClassVar[int] = pb.BATCH_READ_ENTRY
    names_are_reused: ClassVar[bool] = False

    def __init__(self, link: Link, address: str, limits: Limits) -> None:
        super().__init__(link, address, limits)
        self.extensions = Extensions()
        self._transactions = itertools.count(1)
        self._stream_numbers = itertools.count(1)

    # --- adds ---------------------------------------------------------------------------------------------------------

    def add_stored_async(
        self, stored: Buffer, master_key: bytes, *, flags: int = 0, deferred_sync: bool = False
    ) -> Reply[None]:
        """Store bytes that are an entry already, header and digest included.

        `deferred_sync`: the answer comes when the entry is written, and only `force` makes it durable.
        """
        entry = bytes(stored)
        if len(entry) < FIXED_BYTES:
            raise IncorrectParameter(f"an entry as stored has at least {FIXED_BYTES} bytes, this one {len(entry)}")
        message = requests.add(next(self._transactions), entry, master_key, flags, deferred_sync=deferred_sync)
        about = message.addRequest
        return self._ask(message, f"add of {_entry(about.ledgerId, about.entryId)}", WriteError, answers.nothing)

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
        message = requests.force(next(self._transactions), ledger)
        self._ask(message, f"force of ledger {ledger}", WriteError, answers.nothing).result()

    def write_close(self, ledger: int, master_key: bytes) -> None:
        """Tell the bookie that nothing more will be written; it neither fences nor keeps anybody from writing.

        IllegalOperation when the bookie does not advertise it.
        """
        self._needs(WRITE_CLOSE)
        message = requests.write_close(next(self._transactions), ledger, master_key)
        self._ask(message, f"write close of ledger {ledger}", WriteError, answers.nothing).result()

    # --- reads --------------------------------------------------------------------------------------------------------

    def read_async(self, ledger: int, entry: int, *, flags: int = 0, master_key: bytes | None = None) -> Reply[bytes]:
        """`read` without waiting for the answer."""
        message = requests.read(next(self._transactions), ledger, entry, flags, master_key)
        return self._ask(message, f"read of {_entry(ledger, entry)}", ReadError, answers.entry)

    def read_with_lac(self, ledger: int, entry: int) -> ReadAnswer:
        """An entry as stored, and the highest LAC that the bookie knows. NoSuchLedger, NoSuchEntry, ReadError, …"""
        message = requests.read(next(self._transactions), ledger, entry, 0, None)
        return self._ask(message, f"read of {_entry(ledger, entry)}", ReadError, answers.read).result()

    def wait_for_lac(self, ledger: int, previous_lac: int, timeout_ms: int) -> ReadAnswer:
        """Wait at the bookie until its LAC is above `previous_lac`; entry previous_lac + 1 comes along if it is there.

        A fence, or the time's end, ends the wait as well: the answer's LAC then is what it was. NoSuchLedger,
        NoSuchEntry (an empty ledger), ReadError.
        """
        return self.wait_for_lac_async(ledger, previous_lac, timeout_ms).result()

    def wait_for_lac_async(self, ledger: int, previous_lac: int, timeout_ms: int) -> Reply[ReadAnswer]:
        """`wait_for_lac` without waiting here."""
        message = requests.wait_for_lac(next(self._transactions), ledger, previous_lac, timeout_ms)
        what = f"wait for the LAC of ledger {ledger} to pass {previous_lac}"
        return self._ask(message, what, ReadError, answers.read, extra_s=timeout_ms / 1000)

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
        size = min(max_size, self.frame_bytes_max)
        message = requests.batch_read(next(self._transactions), ledger, start, max_count, size, flags, master_key)
        what = f"batch read of ledger {ledger} from entry {start}"
        return self._ask(message, what, ReadError, answers.batch(ledger, start))

    # --- the end of a ledger ------------------------------------------------------------------------------------------

    def write_lac(self, ledger: int, lac: int, *, digest: Digest) -> None:
        """Store an explicit LAC; returns when it is durable. UnauthorizedAccess, BookieReadOnly, WriteError."""
        packet = digest.seal_lac(ledger, lac)
        message = requests.write_lac(next(self._transactions), ledger, lac, packet, digest.master_key)
        self._ask(message, f"write of LAC {lac} of ledger {ledger}", WriteError, answers.nothing).result()

    def read_lac(self, ledger: int) -> LacAnswer:
        """The explicit LAC and the last entry, as stored. NoSuchLedger, NoSuchEntry (neither), ReadError."""
        message = requests.read_lac(next(self._transactions), ledger)
        return self._ask(message, f"read of the LAC of ledger {ledger}", ReadError, answers.lacs).result()

    # --- the bookie ---------------------------------------------------------------------------------------------------

    def bookie_info(self) -> BookieInfo:
        """Capacity and free space of its disks. ReadError."""
        message = requests.bookie_info(next(self._transactions))
        return self._ask(message, "bookie info", ReadError, answers.bookie_info).result()

    def list_entries(self, ledger: int) -> AvailableEntries:
        """Which entries of the ledger the bookie holds. NoSuchLedger, ReadError; some Java bookies never answer."""
        message = requests.list_entries(next(self._transactions), ledger)
        return self._ask(message, f"list of entries of ledger {ledger}", ReadError, answers.available).result()

    def auth(self, plugin: str, token: bytes) -> tuple[str, bytes]:
        """Send a token of an authentication provider; the bookie's plugin name and token. UnauthorizedAccess."""
        message = requests.auth(next(self._transactions), plugin, token)
        return self._ask(message, f"authentication by {plugin}", UnauthorizedAccess, answers.auth).result()

    # --- the protocol -------------------------------------------------------------------------------------------------

    def error_for(self, code: int, default: type[BookKeeperError]) -> type[BookKeeperError] | None:
        """The class that a V3 status means, None for EOK."""
        return error_from_v3(code, default)

    def _key(self, row: Row) -> Key:
        return row[4], row[0]

    def _answer(self, row: Row, received: memoryview) -> None:
        if row[0] == pb.BATCH_READ_ENTRY and row[1] == BAD_REQUEST:
            self.extensions.withdraw(BATCH_READ)
            if reply := self._pending.get(self._key(row)):
                reply.default = IllegalOperation
        super()._answer(row, received)

    def _needs(self, extension: str) -> None:
        if extension not in self.extensions:
            raise IllegalOperation(f"{self.address}: the bookie does not advertise {extension}; do without it")

    def _ask(
        self,
        message: pb.Request,
        what: str,
        default: type[BookKeeperError],
        decode: Callable[[memoryview], T],
        *,
        extra_s: float = 0.0,
    ) -> Reply[T]:
        key = message.header.txnId, message.header.operation
        return self._submit(key, framed(message), what, default, decode, extra_s=extra_s)


def _entry(ledger: int, entry: int) -> str:
    return f"ledger {ledger}, {'last entry' if entry == LAST_ENTRY else f'entry {entry}'}"
