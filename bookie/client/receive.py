"""The receiving side of a connection: memory that answers arrive in, and the table they are cut into.

One thread, the channel's receiver. Answers with entries are lent out as views: memory is used again only when nothing
of it was lent, else it belongs to the views and new memory takes its place.
"""

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer

from bookie._fast import client_wire
from bookie.client.security import Link

SLAB_BYTES = 4 << 20
ROOM_BYTES_MIN = 64 << 10
ROWS = 8192


class Cutter(Protocol):
    """Cuts whole answers off a buffer: `cut` of the room that knows the protocol."""

    def __call__(self, buffer: Buffer, frame_bytes_max: int, rows: NDArray[Any], /) -> tuple[int, int, int]: ...


class ReceiveBuffer:
    """Cuts what a connection delivers into rows of `client_wire.RESPONSE`. `frame_bytes_max` bounds its memory."""

    __slots__ = ("_cut", "_end", "_lent", "_limit", "_need", "_slab", "_start", "rows", "view")

    def __init__(self, frame_bytes_max: int, cut: Cutter) -> None:
        self._cut = cut
        self._limit = frame_bytes_max
        self._slab: NDArray[np.uint8] = np.empty(SLAB_BYTES, dtype=np.uint8)
        self._start = self._end = self._need = 0
        self._lent = False
        self.rows: NDArray[Any] = np.zeros(ROWS, dtype=client_wire.RESPONSE)
        self.view = self._slab.data

    def receive(self, link: Link) -> int:
        """Take in what has arrived; 0 when the peer closed. Raises what `recv_into` raises."""
        self._make_room()
        got = link.recv_into(self.view[self._end :])
        self._end += got
        return got

    def cut(self) -> tuple[int, memoryview]:
        """Cut the next answers into `rows`: their count, and the bytes that body_at counts from. Call until it is 0.

        ValueError when the peer broke the framing rules.
        """
        whole = self.view[self._start : self._end]
        if len(whole) < self._need:
            return 0, whole
        count, taken, self._need = self._cut(whole, self._limit, self.rows)
        self._start += taken
        return count, whole

    def lend(self) -> None:
        """Views of the current memory were handed out: it must not be written to again in front of what is unread."""
        self._lent = True

    def _make_room(self) -> None:
        held = self._end - self._start
        if held == 0 and not self._lent:
            self._start = self._end = 0
        room = max(self._need - held, ROOM_BYTES_MIN)
        if len(self.view) - self._end >= room:
            return
        tail = self._slab[self._start : self._end]
        if self._lent or len(self.view) - held < room:
            self._slab = np.empty(max(SLAB_BYTES, held + room), dtype=np.uint8)
            self.view = self._slab.data
            self._lent = False
        self._slab[:held] = tail
        self._start, self._end = 0, held
