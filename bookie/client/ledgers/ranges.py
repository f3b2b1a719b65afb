"""All entries of a range in order, by batch reads that are sent ahead. Event loop.

The bytes that are requested, or have arrived and were not taken, stay below `bytes_in_flight_max`; only the batch
that the caller waits for may exceed it. If a response has fewer entries than requested, the rest is requested again
at once, and later requests ask for fewer entries. Module `ledgers.range_sizes` chooses how many entries a request asks
for, and how many requests are in flight.
"""

import asyncio
import heapq
from collections.abc import Awaitable, Callable

from bookie.client.config import ClientConfig
from bookie.client.entries.verified import EntryBatch
from bookie.client.ledgers.batched import Batched
from bookie.client.ledgers.range_sizes import RangeSizes
from bookie.errors import BookieUnavailable, BookKeeperError

__all__ = ["RangeReader"]

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
        self._sizes = RangeSizes(max_count, max_size, config)
        self._bytes = 0
        self._under_way = 0
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
        size = self._sizes.batch_max
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
        room = (self._sizes.bytes_max - self._bytes) // self._sizes.size
        if first == self._next:
            room = max(room, 1)
        while first is not None and room > 0 and len(self._workers) < self._sizes.requests:
            worker = asyncio.create_task(self._work())
            self._workers.add(worker)
            worker.add_done_callback(self._ended)
            room -= 1

    def _wanted(self) -> int | None:
        """Return the entry with which the next request begins, or None if there is nothing left to request."""
        first = self._holes[0][0] if self._holes else self._ask
        return first if first < min((self._end, *self._failed)) else None

    async def _work(self) -> None:
        while (first := self._wanted()) is not None and self._under_way < self._sizes.requests:
            if first != self._next and self._bytes + self._sizes.size > self._sizes.bytes_max:
                return
            await self._request()

    async def _request(self) -> None:
        if self._holes:
            first, end = heapq.heappop(self._holes)
        else:
            first = self._ask
            end = self._ask = min(first + self._sizes.count, self._end)
        size = self._sizes.size
        self._bytes += size
        self._under_way += 1
        now = asyncio.get_running_loop().time
        asked_s = now()
        try:
            batch = await self._read(first, end - 1, end - first, size)
        except BookKeeperError as error:
            self._failed[first] = error
            self._arrived.set()
            return
        finally:
            self._bytes -= size
            self._under_way -= 1
        self._bytes += batch.nbytes
        self._held[first] = batch
        self._sizes.learn(batch, end, now() - asked_s)
        if batch.last + 1 < end:
            heapq.heappush(self._holes, (batch.last + 1, end))
        if first == self._next:
            self._arrived.set()

    def _ended(self, worker: asyncio.Task[None]) -> None:
        self._workers.discard(worker)
        error: BaseException | None = None
        if not worker.cancelled():
            error = worker.exception()
        elif self._next < self._end:  # by whoever cancels all tasks of the event loop, and not by us
            error = BookieUnavailable("a request for a part of the range was cancelled; read the range again")
        if error is not None:
            self._broken = error
            self._arrived.set()
