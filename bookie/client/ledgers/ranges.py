"""All entries of a range in order, by batch reads that are sent ahead. Event loop.

The bytes that are requested, or have arrived and were not taken, stay below `bytes_in_flight_max`; only the batch
that the caller waits for may exceed it. If a response has fewer entries than requested, the rest is requested again
at once, and later requests ask for fewer entries. This module chooses how many entries a request asks for: a response
is worth a round trip from some hundred KiB on, so a batch that is handed out may be a part of one.

It also chooses how many requests are in flight. Responses that wait in the socket have left the processor's caches
when they are handled, which doubles the cost of an entry; so there are two requests, and more only where the latency
is high.
"""

import asyncio
import heapq
import math
from collections.abc import Awaitable, Callable

from bookie.client.config import ClientConfig
from bookie.client.entries.verified import EntryBatch
from bookie.client.ledgers.batched import Batched
from bookie.errors import BookKeeperError

__all__ = ["RangeReader"]

REQUESTS_MIN, REQUESTS_MAX = 2, 16
"""The number of requests in flight."""
FILLED_S = 0.0004
"""One more request is sent for each such time in the latency of the quickest response; it transfers about as long
at 10 Gbit/s.
"""
ANSWER_BYTES = 512 << 10
"""The size of a response that is worth a request, whatever the limits of a batch are."""
COUNT_START = 500
"""The entries of the first requests; later ones ask for as many as fill a response."""
COUNT_MAX = 1 << 16

Read = Callable[[int, int | None, int, int], Awaitable[EntryBatch]]
"""Reads some entries, given the first and the last one, the highest number, and the highest size of the response in
bytes.
"""


class RangeReader(Batched):
    """The batches of a range: all of its entries, or an error.

    It begins to read with the first call, and then reads ahead until the bytes are used up. If it is left early it
    comes to rest by itself; `aclose` ends it at once.
    """

    def __init__(self, read: Read, first: int, last: int, max_count: int, max_size: int, config: ClientConfig) -> None:
        self._read = read
        self._next = first  # the next entry to hand out
        self._ask = first  # the next entry that was never requested
        self._end = last + 1
        self._batch_max = max_count or COUNT_MAX
        self._count = COUNT_START
        self._bytes_max = config.bytes_in_flight_max
        frame = min(max_size, config.frame_bytes_max) if max_size > 0 else config.frame_bytes_max
        self._size = min(frame, self._bytes_max)
        self._worth = min(self._size * 7 // 8, ANSWER_BYTES)  # less than all of it, since entry sizes vary
        self._bytes = 0
        self._requests = REQUESTS_MIN
        self._under_way = 0
        self._quickest_s = math.inf
        self._holes: list[tuple[int, int]] = []  # requested but not answered; a heap
        self._held: dict[int, EntryBatch] = {}
        self._failed: dict[int, BookKeeperError] = {}
        self._broken: BaseException | None = None
        self._error: BaseException | None = None  # has ended the range, and was not raised yet
        self._arrived = asyncio.Event()
        self._workers: set[asyncio.Task[None]] = set()

    async def ready(self, limit: int = 0) -> list[EntryBatch]:
        """Return the next batches, as many as have arrived and at least one; at most `limit`, if that is not 0.

        An empty list means the end of the range.
        """
        if self._error is None and self._next < self._end:
            self._pump()
            await self._next_arrived()
        if self._error is not None:
            await self.aclose()
            if (error := self._error) is not None:  # no call that was cancelled meanwhile has taken it
                self._error = None
                raise error
        got: list[EntryBatch] = []
        while self._next in self._held and (not limit or len(got) < limit):
            self._hand_out(self._held.pop(self._next), got, limit)
        self._pump()
        return got

    async def _next_arrived(self) -> None:
        """Wait until the next batch or its error has arrived, or the reader is closed."""
        while self._next not in self._held and self._next < self._end:
            self._error = self._broken or self._failed.get(self._next)
            if self._error is not None:
                return
            self._arrived.clear()
            await self._arrived.wait()

    def _hand_out(self, batch: EntryBatch, got: list[EntryBatch], limit: int) -> None:
        """Split a batch into pieces of the requested size; what exceeds the limit is kept."""
        size = self._batch_max
        pieces = -(-len(batch) // size)
        taken = min(pieces, limit - len(got)) if limit else pieces
        rest = batch[taken * size :] if taken < pieces else None
        if rest:
            self._held[rest.first] = rest
        got += [batch] if pieces == 1 else [batch[k * size : (k + 1) * size] for k in range(taken)]
        self._next = got[-1].last + 1
        self._bytes -= batch.nbytes - (rest.nbytes if rest else 0)

    @property
    def bytes_held(self) -> int:
        """The bytes that have arrived and were not taken, or are reserved for responses to come."""
        return self._bytes

    async def aclose(self) -> None:
        """Stop reading. Further calls do nothing."""
        self._end = self._next
        self._holes.clear()
        self._held.clear()
        self._arrived.set()
        for worker in self._workers:
            worker.cancel()
        await asyncio.gather(*self._workers, return_exceptions=True)

    # --- asking ahead -------------------------------------------------------------------------------------------------

    def _pump(self) -> None:
        """Send as many requests as there is room for."""
        first = self._wanted()
        room = (self._bytes_max - self._bytes) // self._size
        if first == self._next:
            room = max(room, 1)
        while first is not None and room > 0 and len(self._workers) < self._requests:
            worker = asyncio.create_task(self._work())
            self._workers.add(worker)
            worker.add_done_callback(self._ended)
            room -= 1

    def _wanted(self) -> int | None:
        """Return the entry with which the next request begins, or None if there is nothing left to request."""
        first = self._holes[0][0] if self._holes else self._ask
        return first if first < min((self._end, *self._failed)) else None

    async def _work(self) -> None:
        while (first := self._wanted()) is not None and self._under_way < self._requests:
            if first != self._next and self._bytes + self._size > self._bytes_max:
                return
            await self._request()

    async def _request(self) -> None:
        if self._holes:
            first, end = heapq.heappop(self._holes)
        else:
            first = self._ask
            end = self._ask = min(first + self._count, self._end)
        self._bytes += self._size
        self._under_way += 1
        now = asyncio.get_running_loop().time
        asked_s = now()
        try:
            batch = await self._read(first, end - 1, end - first, self._size)
        except BookKeeperError as error:
            self._failed[first] = error
            self._arrived.set()
            return
        finally:
            self._bytes -= self._size
            self._under_way -= 1
        self._bytes += batch.nbytes
        self._held[first] = batch
        self._took(now() - asked_s)
        if batch.last + 1 < end:
            heapq.heappush(self._holes, (batch.last + 1, end))
            self._count = len(batch)
        elif len(batch) >= self._count:
            self._count = min(COUNT_MAX, 2 * self._count, max(1, self._worth * len(batch) // batch.nbytes))
        if first == self._next:
            self._arrived.set()

    def _took(self, seconds: float) -> None:
        if seconds < self._quickest_s:
            self._quickest_s = seconds
            self._requests = min(REQUESTS_MIN + int(seconds / FILLED_S), REQUESTS_MAX)

    def _ended(self, worker: asyncio.Task[None]) -> None:
        self._workers.discard(worker)
        if not worker.cancelled() and (error := worker.exception()) is not None:
            self._broken = error
            self._arrived.set()
