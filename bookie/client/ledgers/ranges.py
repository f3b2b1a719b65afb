"""All entries of a range in order, by batch reads that are asked for ahead. Event loop.

What is asked for and what has arrived but was not taken yet stays below `bytes_in_flight_max`; only the batch that is
waited for may go beyond it. What an answer lacks of the entries that it was asked for is asked for again at once, and
later requests are made that much smaller. How many entries a request asks for is this module's choice: an answer is
worth its way from some hundred KiB on, so a batch that is handed out may be a part of one.

How many requests are under way is, too. Answers that wait in the socket have left the processor's caches when they are
looked at, which doubles what an entry costs: so there are two, and more only where the way is long.
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
"""That are under way at a time."""
FILLED_S = 0.0004
"""So much of the quickest answer's time is filled by one request more, at some 10 Gbit/s."""
ANSWER_BYTES = 512 << 10
"""Worth a request, whatever the most entries of a batch are."""
COUNT_START = 500
"""Entries that the first requests ask for; then as many as make up that many bytes."""
COUNT_MAX = 1 << 16

Read = Callable[[int, int | None, int, int], Awaitable[EntryBatch]]
"""Some entries: first, last, most entries, most bytes of the answer."""


class RangeReader(Batched):
    """`async for batch in reader`, or `ready` for all that is there at once. All of the range, or an error.

    It reads when it is first asked for something, and ahead of that until the bytes are used up; so one that is left
    early comes to rest, and `aclose` ends it at once.
    """

    def __init__(self, read: Read, first: int, last: int, max_count: int, max_size: int, config: ClientConfig) -> None:
        self._read = read
        self._next = first  # to hand out
        self._ask = first  # never asked for yet
        self._end = last + 1
        self._batch_max = max_count or COUNT_MAX
        self._count = COUNT_START
        self._bytes_max = config.bytes_in_flight_max
        frame = min(max_size, config.frame_bytes_max) if max_size > 0 else config.frame_bytes_max
        self._size = min(frame, self._bytes_max)
        self._worth = min(self._size * 7 // 8, ANSWER_BYTES)  # entries are not all of one size
        self._bytes = 0
        self._requests = REQUESTS_MIN
        self._under_way = 0
        self._quickest_s = math.inf
        self._holes: list[tuple[int, int]] = []  # asked for and not answered, a heap
        self._held: dict[int, EntryBatch] = {}
        self._failed: dict[int, BookKeeperError] = {}
        self._broken: BaseException | None = None
        self._arrived = asyncio.Event()
        self._workers: set[asyncio.Task[None]] = set()

    async def ready(self, limit: int = 0) -> list[EntryBatch]:
        """The batches that follow, as many as are there and one at least; `limit` at most. Empty at the end."""
        if self._next >= self._end:
            return []
        self._pump()
        while self._next not in self._held:
            if self._next in self._failed or self._broken:
                await self.aclose()
                raise self._broken or self._failed[self._next]
            self._arrived.clear()
            await self._arrived.wait()
        got: list[EntryBatch] = []
        while self._next in self._held and (not limit or len(got) < limit):
            self._hand_out(self._held.pop(self._next), got, limit)
        self._pump()
        return got

    def _hand_out(self, batch: EntryBatch, got: list[EntryBatch], limit: int) -> None:
        """In pieces of the size that was asked for; what is above the limit is held again."""
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
        """That arrived and were not taken, and that are reserved for answers under way."""
        return self._bytes

    async def aclose(self) -> None:
        """Ask for nothing more. May be called twice."""
        self._end = self._next
        self._holes.clear()
        self._held.clear()
        for worker in self._workers:
            worker.cancel()
        await asyncio.gather(*self._workers, return_exceptions=True)

    # --- asking ahead -------------------------------------------------------------------------------------------------

    def _pump(self) -> None:
        """Have as many requests under way as there is room for."""
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
        """What is to be asked for next."""
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
