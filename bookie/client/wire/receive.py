"""The receiving side of a connection: memory that answers arrive in, and the table they are cut into.

One thread, the channel's receiver. Answers with entries are lent out as views: memory is used again only when nothing
of it was lent, else it belongs to the views and new memory takes its place.
"""

import sys
from collections import deque
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer

from bookie._fast.client import framing_v2
from bookie.client.wire.security import Link

SLAB_BYTES = 2 << 20
"""A few of them lie in a processor's caches."""
ROOM_BYTES_MIN = 64 << 10
ROWS = 8192
RETIRED_MAX = 2
"""Slabs that were lent are kept so many, for when they come back."""
UNSHARED = 3
"""References to a slab that no view refers to: those of the table, of who asks, and of the question itself."""


class Cutter(Protocol):
    """Cuts whole answers off a buffer: `cut` of the room that knows the protocol."""

    def __call__(self, buffer: Buffer, frame_bytes_max: int, rows: NDArray[Any], /) -> tuple[int, int, int]: ...


class ReceiveBuffer:
    """Cuts what a connection delivers into rows of `framing_v2.RESPONSE`. `frame_bytes_max` bounds its memory.

    With `skipped_bytes_max` a longer answer is not the connection's end: it is `oversized`, and can be skipped.
    """

    __slots__ = (
        "_cut",
        "_end",
        "_lent",
        "_limit",
        "_need",
        "_outer",
        "_retired",
        "_skip",
        "_slab",
        "_start",
        "rows",
        "view",
    )

    def __init__(self, frame_bytes_max: int, cut: Cutter, *, skipped_bytes_max: int = 0) -> None:
        self._cut = cut
        self._limit = frame_bytes_max
        self._outer = max(frame_bytes_max, skipped_bytes_max)
        self._skip = 0
        self._slab: NDArray[np.uint8] = np.empty(SLAB_BYTES, dtype=np.uint8)
        self._start = self._end = self._need = 0
        self._lent = False
        self._retired: deque[NDArray[np.uint8]] = deque()  # lent, and perhaps still held
        self.rows: NDArray[Any] = np.zeros(ROWS, dtype=framing_v2.RESPONSE)
        self.view = self._slab.data

    def receive(self, link: Link) -> int:
        """Take in what has arrived; 0 when the peer closed. Raises what `recv_into` raises."""
        got = link.recv_into(self.space())
        self.received(got)
        return got

    def space(self) -> memoryview:
        """Where the next bytes go; `received` tells how many came."""
        self._make_room()
        return self.view[self._end :]

    def received(self, count: int) -> None:
        """So many bytes were put into `space`."""
        self._end += count
        if self._skip:
            dropped = min(self._skip, count)
            self._skip -= dropped
            self._start += dropped

    def cut(self) -> tuple[int, memoryview]:
        """Cut the next answers into `rows`: their count, and the bytes that body_at counts from. Call until it is 0.

        ValueError when the peer broke the framing rules.
        """
        whole = self.view[self._start : self._end]
        if len(whole) < self._need or not whole:
            return 0, whole
        count, taken, self._need = self._cut(whole, self._outer, self.rows)
        self._start += taken
        return count, whole

    @property
    def oversized(self) -> int:
        """Bytes of the answer that comes next, when that is longer than what is held; else 0."""
        return self._need if self._need > self._limit else 0

    @property
    def uncut(self) -> memoryview:
        """What has come of the answer that comes next."""
        return self.view[self._start : self._end]

    def skip(self) -> None:
        """Drop the answer that comes next, whatever is still to come of it."""
        held = self._end - self._start
        self._skip = max(self._need - held, 0)
        self._start += min(self._need, held)
        self._need = 0

    def lend(self) -> None:
        """Views of the current memory were handed out: it must not be written to again in front of what is unread."""
        self._lent = True

    def _make_room(self) -> None:
        held = self._end - self._start
        if held == 0 and not self._lent:
            self._start = self._end = 0
        room = max(min(self._need, self._limit) - held, ROOM_BYTES_MIN)
        if len(self.view) - self._end >= room:
            return
        tail = self._slab[self._start : self._end]
        if self._lent or len(self.view) - held < room:
            slab = self._fresh(max(len(self._slab), held + room))
            slab[:held] = tail
            if self._lent:
                self._retired.append(self._slab)
            self._slab, self.view = slab, slab.data
            self._lent = False
            self._start, self._end = 0, held
            return
        self._slab[:held] = tail
        self._start, self._end = 0, held

    def _fresh(self, size: int) -> NDArray[np.uint8]:
        """Memory that nobody looks at: the last that was lent and came back, for its pages are warm, or new."""
        while len(self._retired) > RETIRED_MAX:
            self._retired.popleft()
        for place in reversed(range(len(self._retired))):
            slab = self._retired[place]
            if sys.getrefcount(slab) == UNSHARED and len(slab) >= size:
                del self._retired[place]
                return slab
        return np.empty(size, dtype=np.uint8)
