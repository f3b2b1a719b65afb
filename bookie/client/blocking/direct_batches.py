"""The batches of a range that the calling thread reads over a direct connection, several requests ahead.

A *stretch* of the range that cannot be read so is read by the event loop: the first entries of a bookie that is not
known yet, and what follows a request that failed. A stretch that follows another one is twice as long. Everything else
about a range is as in `ledgers.ranges`.

The bytes that are requested, or have arrived and were not handed over, stay below `maxReadBytesInFlight`. They are
mostly in the bookie and in the socket while the caller does other work.
"""

import heapq
import time
from collections.abc import Callable, Coroutine
from typing import Any

from bookie._fast.client.direct_link import DirectLink
from bookie._fast.client.payload_block import PayloadBlock
from bookie.client.aio.reading import Batches as AioBatches
from bookie.client.blocking.batches import LoopSource
from bookie.client.blocking.direct_reads import DirectReads
from bookie.client.direct.pool import DirectPool
from bookie.client.entries.verified import EntryBatch
from bookie.client.ledgers.range_sizes import COUNT_START, RangeSizes

__all__ = ["DirectBatches"]

STRETCH_MAX = 1 << 16
"""The highest number of entries in a stretch that the event loop reads."""
OUTSTANDING_MAX = 16
"""A direct connection has so many requests outstanding at most."""

Stretch = Callable[[int, int], Coroutine[Any, Any, AioBatches]]
"""Begins to read the entries from the first to the last one by the event loop."""


class DirectBatches:
    """The source of the batches of a range, from entry `first` to entry `last`."""

    def __init__(self, direct: DirectReads, stretch: Stretch, first: int, last: int, sizes: RangeSizes) -> None:
        self._direct = direct
        self._begin_stretch = stretch
        self._next = first  # the next entry to hand over
        self._ask = first  # the next entry that was never requested
        self._last = last
        self._sizes = sizes
        self._stretch_count = COUNT_START
        self._by_loop: LoopSource | None = None
        self._stretch_last = -1
        self._pool: DirectPool | None = None
        self._link: DirectLink | None = None
        self._link_last = -1  # of the segment that the link can read
        self._asked: dict[int, tuple[int, float]] = {}  # the end of what was requested, and when
        self._holes: list[tuple[int, int]] = []  # requested, but missing in the response; a heap
        self._held: dict[int, EntryBatch] = {}
        self._block: PayloadBlock | None = None
        self._held_bytes = 0

    def fill(self, ready: Callable[[EntryBatch], None], timeout: float | None) -> None:
        """Wait for the next batches."""
        began = time.monotonic()
        while self._next <= self._last:
            if self._by_loop is None:
                step_s = self._direct.step(timeout)
                if self._read_directly(ready, timeout, step_s):
                    return
                self._leave()
                self._begin(self._direct.left(began, timeout))
            if self._read_by_loop(ready, self._direct.left(began, timeout)):
                return

    def receive_into(self, block: PayloadBlock) -> None:
        """Receive responses in the memory of a block."""
        self._block = block

    def close(self) -> None:
        """Stop reading ahead."""
        self._last = self._next - 1
        self._leave()
        if self._by_loop is not None:
            self._by_loop.close()

    # --- directly -----------------------------------------------------------------------------------------------------

    def _read_directly(self, ready: Callable[[EntryBatch], None], timeout: float | None, step_s: float) -> bool:
        """Hand over at least one batch, or return False if the event loop must do it."""
        if not step_s:
            return False
        if self._link is not None and self._next > self._link_last:
            self._leave()
        if self._link is None and not self._connect(timeout, step_s):
            return False
        try:
            while self._next not in self._held:
                self._request(step_s)
                if not self._receive(step_s):
                    return False
            self._hand_over(ready)
            if self._next > self._last:
                self._leave()  # at once, since not everybody closes a range that has ended
            else:
                self._request(step_s)
        except BaseException:
            self._leave()
            raise
        return True

    def _connect(self, timeout: float | None, step_s: float) -> bool:
        found = self._direct.connection(self._next, timeout, step_s)
        if found is None:
            return False
        self._pool, self._link, self._link_last = found
        self._link_last = min(self._link_last, self._last)
        return True

    def _request(self, step_s: float) -> None:
        """Send as many requests as there is room for; the next entry is always requested."""
        link, sizes = self._link, self._sizes
        assert link is not None
        while link.outstanding < min(sizes.requests, OUTSTANDING_MAX):
            first = self._holes[0][0] if self._holes else self._ask
            if first > self._link_last:
                return
            if first != self._next and self._held_bytes + (link.outstanding + 1) * sizes.size > sizes.bytes_max:
                return
            end = heapq.heappop(self._holes)[1] if self._holes else min(first + sizes.count, self._link_last + 1)
            self._ask = max(self._ask, end)
            self._asked[first] = end, time.monotonic()
            if not self._direct.ask(link, first, end - first, sizes.size, step_s):
                return

    def _receive(self, step_s: float) -> bool:
        """Receive one response, and return whether it was good."""
        link, pool = self._link, self._pool
        assert link is not None
        assert pool is not None
        block = None if self._held else self._block
        batch = self._direct.take(link, pool, step_s, block, self._next) if link.outstanding else None
        if batch is None:
            return False
        end, asked_s = self._asked.pop(batch.first)
        after = batch.last + 1
        self._sizes.learn(batch, end, time.monotonic() - asked_s)
        if after < end:
            heapq.heappush(self._holes, (after, end))
        self._held[batch.first] = batch
        self._held_bytes += batch.nbytes
        self._stretch_count = COUNT_START
        return True

    def _hand_over(self, ready: Callable[[EntryBatch], None]) -> None:
        while (batch := self._held.pop(self._next, None)) is not None:
            self._held_bytes -= batch.nbytes
            size = self._sizes.batch_max
            pieces = [batch] if len(batch) <= size else [batch[k : k + size] for k in range(0, len(batch), size)]
            for piece in pieces:
                after = piece.last + 1
                # A signal's handler runs after a call, so it finds the entry handed over and counted, or neither.
                self._next = after
                ready(piece)

    def _leave(self) -> None:
        """Give the connection back, and forget what was requested or has arrived and was not handed over."""
        link, self._link = self._link, None
        self._asked.clear()
        self._holes.clear()
        self._held.clear()
        self._held_bytes = 0
        self._ask = self._next
        if link is not None and self._pool is not None:
            self._pool.give(link)

    # --- by the event loop --------------------------------------------------------------------------------------------

    def _begin(self, timeout: float | None) -> None:
        """Begin a stretch that the event loop reads."""
        last = min(self._last, self._next + self._stretch_count - 1)
        self._stretch_count = min(2 * self._stretch_count, STRETCH_MAX)
        self._by_loop = self._direct.by_loop(self._begin_stretch(self._next, last), timeout)
        self._stretch_last = last

    def _read_by_loop(self, ready: Callable[[EntryBatch], None], timeout: float | None) -> bool:
        """Hand over at least one batch, or end the range; return False if only the stretch has ended."""
        assert self._by_loop is not None
        before = self._next

        def take(batch: EntryBatch) -> None:
            self._next = batch.last + 1
            ready(batch)

        self._by_loop.fill(take, timeout)
        if self._next > self._stretch_last:
            self._by_loop, self._ask = None, self._next
        elif self._next == before:  # it has ended with an error, which was raised before
            self._last = self._next - 1
        return self._next > before or self._next > self._last
