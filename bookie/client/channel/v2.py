"""A channel in V2: adds, reads, batch reads and fencing.

V2 answers name ledger and entry, not a request: a second request of the same name waits until the first is answered,
even when its caller has given up, so that no answer is ever taken for another one's.
"""

import itertools
import struct
import time
from typing import ClassVar

from typing_extensions import Buffer

from bookie._fast.client import framing_v2
from bookie._fast.client.add_window import AddWindow
from bookie.client.channel.connection import Limits
from bookie.client.channel.operations import BookieChannel
from bookie.client.channel.reply import Reply
from bookie.client.channel.stream import AddStream
from bookie.client.entries.batch import StoredBatch
from bookie.client.entries.digest import Digest
from bookie.client.wire.flags import LAST_ENTRY, MIB
from bookie.client.wire.messages import parsed
from bookie.client.wire.receive import Cutter
from bookie.client.wire.request import Key, Row
from bookie.client.wire.security import Link
from bookie.client.wire.v2 import OP_ADD, OP_AUTH, OP_BATCH_READ, OP_READ
from bookie.errors import (
    BookKeeperError,
    IllegalOperation,
    IncorrectParameter,
    ReadError,
    UnauthorizedAccess,
    WriteError,
    error_from_v2,
)
from bookie.pb.wire_pb2 import AuthMessage


class Channel(BookieChannel):
    """See `Connection` and `BookieChannel`."""

    cutter: ClassVar[Cutter] = staticmethod(framing_v2.cut)
    batch_op: ClassVar[int] = OP_BATCH_READ
    names_are_reused: ClassVar[bool] = True

    def __init__(self, link: Link, address: str, limits: Limits) -> None:
        super().__init__(link, address, limits)
        self._request_ids = itertools.count(1)
        # Guarded by `changed`; both also in `_windows`.
        self._streams: list[AddWindow] = []  # of the streams being written
        self._leaving: list[AddWindow] = []  # of streams given up while adds were unanswered

    # --- adds ---------------------------------------------------------------------------------------------------------

    def add_stored_async(self, stored: Buffer, master_key: bytes, *, flags: int = 0) -> Reply[None]:
        """Store bytes that are an entry already, header and digest included: a copy from another replica."""
        head = memoryview(stored)[:16]
        ledger, entry = struct.unpack(">qq", head) if len(head) == 16 else (0, 0)
        frame = framing_v2.add_frame(master_key, stored, flags)
        what = f"add of ledger {ledger}, entry {entry}"
        return self._submit((OP_ADD, ledger, entry), frame, what, WriteError, lambda _: None)

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
        try:
            window = AddWindow(ledger, first, outstanding)
            frames = framing_v2.AddFramer(digest.digester, digest.master_key, ledger, self.frame_bytes_max, flags=flags)
        except ValueError as error:
            raise IncorrectParameter(f"add stream to ledger {ledger}: {error}") from error
        with self.changed:
            if any(other.ledger == ledger for other in self._streams):
                raise IllegalOperation(f"ledger {ledger} has an add stream on this channel; finish it first")
            deadline = time.monotonic() + self.timeout_s
            self._wait_while(lambda: self._has_adds(ledger, first), deadline, f"add stream to ledger {ledger}")
            self._streams.append(window)
            self._windows.append(window)
        return AddStream(self, window, frames, lac=lac, length=length)

    def drop_stream(self, window: AddWindow) -> None:
        """The stream's writer has left. What it sent stays known until it is answered; nothing new takes its names."""
        with self.changed:
            if window not in self._streams:
                return
            self._streams.remove(window)
            self._leaving.append(window)
            self._leaving = [left for left in self._leaving if left.base != left.end]
            self._windows = [*self._streams, *self._leaving]

    def _has_adds(self, ledger: int, first: int) -> bool:
        single = any(key[0] == OP_ADD and key[1] == ledger and key[2] >= first for key in self._pending)
        return single or any(w.ledger == ledger and w.base < w.end > first for w in self._leaving)

    def _blocked(self, key: Key) -> bool:
        op, ledger, entry = key
        if op == OP_ADD and any(w.ledger == ledger and w.base <= entry for w in self._streams):
            raise IllegalOperation(f"{self.address}: entry {entry} of ledger {ledger} is for its add stream to write")
        if super()._blocked(key):
            return True
        return op == OP_ADD and any(w.ledger == ledger and w.base <= entry < w.end for w in self._leaving)

    # --- reads --------------------------------------------------------------------------------------------------------

    def read_async(self, ledger: int, entry: int, *, flags: int = 0, master_key: bytes | None = None) -> Reply[bytes]:
        """`read` without waiting for the answer."""
        frame = framing_v2.read_frame(ledger, entry, flags, master_key)
        what = f"read of ledger {ledger}, {'last entry' if entry == LAST_ENTRY else f'entry {entry}'}"
        return self._submit((OP_READ, ledger, entry), frame, what, ReadError, bytes)

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
        request_id = next(self._request_ids)
        frame = framing_v2.batch_read_frame(
            ledger, start, request_id, max_count, min(max_size, self.frame_bytes_max), flags, master_key
        )
        what = f"batch read of ledger {ledger} from entry {start}"
        return self._submit(
            (OP_BATCH_READ, request_id, 0), frame, what, ReadError, lambda run: StoredBatch(ledger, start, run)
        )

    # --- the protocol -------------------------------------------------------------------------------------------------

    def auth(self, plugin: str, token: bytes) -> tuple[str, bytes]:
        """Send a token of an authentication provider; the bookie's plugin name and token. UnauthorizedAccess."""
        frame = framing_v2.auth_frame(AuthMessage(authPluginName=plugin, payload=token).SerializeToString())

        def decode(body: memoryview) -> tuple[str, bytes]:
            answer = parsed(AuthMessage, body)
            return answer.authPluginName, answer.payload

        return self._submit((OP_AUTH, 0, 0), frame, f"authentication by {plugin}", UnauthorizedAccess, decode).result()

    def error_for(self, code: int, default: type[BookKeeperError]) -> type[BookKeeperError] | None:
        """The class that a V2 return code means, None for OK."""
        return error_from_v2(code, default)

    def _key(self, row: Row) -> Key:
        op, _, ledger, entry, request_id, *_ = row
        return (op, request_id, 0) if op == OP_BATCH_READ else (op, ledger, entry)
