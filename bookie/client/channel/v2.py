"""A channel in V2: adds, reads, batch reads and fencing.

V2 answers name ledger and entry, not a request: a second request of the same name waits until the first is answered,
even when its caller has given up, so that no answer is ever taken for another one's.
"""

import time

from bookie._fast.client import framing_v2
from bookie._fast.client.add_window import AddWindow
from bookie.client.channel.connection import Limits
from bookie.client.channel.operations import BookieChannel
from bookie.client.channel.stream import AddStream
from bookie.client.entries.digest import Digest
from bookie.client.wire.request import Key
from bookie.client.wire.security import Link
from bookie.client.wire.v2 import OP_ADD, WireV2
from bookie.errors import IllegalOperation, IncorrectParameter


class Channel(BookieChannel):
    """See `Connection` and `BookieChannel`."""

    protocol = WireV2

    def __init__(self, link: Link, address: str, limits: Limits) -> None:
        super().__init__(link, address, limits)
        # Guarded by `changed`; both also in `_windows`.
        self._streams: list[AddWindow] = []  # of the streams being written
        self._leaving: list[AddWindow] = []  # of streams given up while adds were unanswered

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
