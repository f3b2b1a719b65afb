"""A channel that speaks V2: adds, reads, batch reads and fencing.

A V2 response names the ledger and the entry, not the request. A second request for the same entry therefore waits
until the first one is answered, even if the first caller has given up, so that no response is taken for that of
another request.
"""

import time

from bookie._fast.client import framing_v2
from bookie._fast.client.add_window import AddWindow
from bookie.client.channel.connection import Limits
from bookie.client.channel.operations import BookieChannel
from bookie.client.channel.stream import AddStream
from bookie.client.entries.digest import Digest
from bookie.client.wire.request import Key
from bookie.client.wire.security import Transport
from bookie.client.wire.v2 import OP_ADD, WireV2
from bookie.errors import IllegalOperation, IncorrectParameter


class Channel(BookieChannel):
    """A connection to one bookie that speaks V2. `BookieChannel` describes its methods."""

    protocol = WireV2

    def __init__(self, link: Transport, address: str, limits: Limits) -> None:
        super().__init__(link, address, limits)
        # Both are guarded by `changed`, and contained in `_windows`.
        self._streams: list[AddWindow] = []  # the windows of streams that are being written
        self._leaving: list[AddWindow] = []  # the windows of streams that ended with unanswered adds

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
        """Open a stream of adds. There can be one stream per ledger at a time.

        Args:
            ledger: The id of the ledger.
            first: The id of the first entry.
            digest: The digest of the ledger.
            lac: The LAC of the ledger before `first`.
            length: Payload bytes of the ledger before `first`.
            outstanding: The highest number of unanswered adds.
            flags: Bits of `Flags`.

        Returns:
            The stream, which is a context manager.

        Raises:
            IllegalOperation: The ledger has another stream on this channel.
            IncorrectParameter: An argument is outside its range.
            RequestTimeout: Earlier adds of the ledger are still unanswered.
        """
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
        """End a stream. Its unanswered adds stay known, so that no new request can use their entry ids before."""
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
            raise IllegalOperation(f"{self.address}: ledger {ledger}, entry {entry}: only its add stream may write it")
        if super()._blocked(key):
            return True
        return op == OP_ADD and any(w.ledger == ledger and w.base <= entry < w.end for w in self._leaving)
