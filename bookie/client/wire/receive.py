"""The receiving side of a connection: the memory that responses are received in, and the table that describes them.

One thread uses it, the channel's receiver. Responses with entries are handed out as views. Memory of which a view was
handed out then belongs to the views, and is replaced; other memory is reused.
"""

import sys
from collections import deque
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer

from bookie._fast.client import framing_v2
from bookie.client.wire.security import Transport

SLAB_BYTES = 2 << 20
"""Small enough for a few slabs to fit into a processor's cache."""
ROOM_BYTES_MIN = 64 << 10
ROWS = 8192
RETIRED_MAX = 2
"""The number of slabs with views that are kept to be reused, in case their views are dropped."""
UNSHARED = 3
"""The reference count of a slab without views: the queue, the local variable, and the argument of `getrefcount`."""


class Cutter(Protocol):
    """Splits a buffer into whole responses: the function `cut` of the protocol's framing module."""

    def __call__(self, buffer: Buffer, frame_bytes_max: int, rows: NDArray[Any], /) -> tuple[int, int, int]: ...


class ReceiveBuffer:
    """Splits the bytes of a connection into rows of `framing_v2.RESPONSE`. `frame_bytes_max` bounds its memory.

    With `skipped_bytes_max`, a response longer than `frame_bytes_max` does not end the connection; `oversized`
    reports it, and `skip` drops it.
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
        self._retired: deque[NDArray[np.uint8]] = deque()  # their views may still be in use
        self.rows: NDArray[Any] = np.zeros(ROWS, dtype=framing_v2.RESPONSE)
        self.view = self._slab.data

    def receive(self, link: Transport) -> int:
        """Receive what has arrived; return 0 if the peer closed the connection. Raises what `recv_into` raises."""
        got = link.recv_into(self.space())
        self.received(got)
        return got

    def space(self) -> memoryview:
        """Return the memory for the next bytes; report with `received` how many were written to it."""
        self._make_room()
        return self.view[self._end :]

    def received(self, count: int) -> None:
        """Take over `count` bytes that were written to `space`."""
        self._end += count
        if self._skip:
            dropped = min(self._skip, count)
            self._skip -= dropped
            self._start += dropped

    def cut(self) -> tuple[int, memoryview]:
        """Split the next responses into `rows`. Call it until it returns a count of 0.

        Returns the number of rows, and the bytes to which their body_at refers. Raises ValueError if the peer
        violated the framing.
        """
        whole = self.view[self._start : self._end]
        if len(whole) < self._need or not whole:
            return 0, whole
        count, taken, self._need = self._cut(whole, self._outer, self.rows)
        self._start += taken
        return count, whole

    @property
    def oversized(self) -> int:
        """The size in bytes of the next response if it is larger than the limit, else 0."""
        return self._need if self._need > self._limit else 0

    @property
    def uncut(self) -> memoryview:
        """The bytes of the next response that have arrived."""
        return self.view[self._start : self._end]

    def skip(self) -> None:
        """Drop the next response, including the bytes of it that have yet to arrive."""
        held = self._end - self._start
        self._skip = max(self._need - held, 0)
        self._start += min(self._need, held)
        self._need = 0

    def lend(self) -> None:
        """Note that views of the current memory were handed out, so that the memory is not overwritten."""
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
        """Return memory without views: the slab whose views were dropped last, since its pages are warm, or a new
        one.
        """
        while len(self._retired) > RETIRED_MAX:
            self._retired.popleft()
        for place in reversed(range(len(self._retired))):
            slab = self._retired[place]
            if sys.getrefcount(slab) == UNSHARED and len(slab) >= size:
                del self._retired[place]
                return slab
        return np.empty(size, dtype=np.uint8)
