"""Reads of one replica that the calling thread does over a direct connection. Any thread.

Every method returns None if the read must be done by the event loop, which then reads from the beginning, chooses
replicas, recovers from failures, and raises the errors. So the results are the same, whichever path is taken.
"""

import math
import time
from collections.abc import Coroutine
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bookie._fast.client.direct_link import LATE, DirectLink
from bookie._fast.client.payload_block import PayloadBlock
from bookie.client.aio.reading import Batches as AioBatches
from bookie.client.aio.reading import Reading
from bookie.client.arguments import IDS_END
from bookie.client.blocking.batches import LoopSource
from bookie.client.bookies import BookieClient
from bookie.client.direct.limits import step_limit_s
from bookie.client.direct.pool import DirectPool
from bookie.client.entries.batch import LENGTH_PREFIX
from bookie.client.entries.verified import EntryBatch
from bookie.client.event_loop.thread import LoopThread
from bookie.client.ledgers.batch_reads import COUNT_MAX
from bookie.client.ledgers.range_sizes import RangeSizes
from bookie.metadata.driver import Versioned
from bookie.metadata.records.ledger_metadata import LedgerMetadata

__all__ = ["DirectReads"]

ROUTE_S, LIMITED_ROUTE_S = 1.0, 0.05
"""How long a route is used before the event loop is asked again, in seconds; the second if it cannot serve all."""
NO_LAST = IDS_END - 1

Got = tuple[int, memoryview, NDArray[np.int64], int | None]
"""First entry, run, offsets and LAC of a response to a batch read."""


class Route(NamedTuple):
    """Where entries are read first: the event loop's choice, which depends on what it knows of the bookies.

    It holds for entries `first` to `last` that are at the same place of their stripes, while the ledger's metadata are
    `versioned`, until the time `until`. `pool` has the connections to the best replica, or is None; `batches` says
    whether that replica serves batch reads.
    """

    versioned: Versioned[LedgerMetadata]
    first: int
    last: int
    pool: DirectPool | None
    batches: bool
    until: float


class DirectReads:
    """The direct reads of one handle."""

    def __init__(self, thread: LoopThread, handle: Reading, bookies: BookieClient) -> None:
        self._thread = thread
        self._handle = handle
        self._reader = reader = handle.reading
        self._view = reader.view
        self._ledger = reader.view.ledger
        self._digester = reader.digest.digester
        self._overhead = LENGTH_PREFIX + reader.digest.overhead
        self._bookies = bookies
        self._stripes = reader.replicas.stripes
        config = bookies.config
        self._on = bookies.directly and not config.random_read_reordering and config.reorder_pending_threshold <= 0
        self._batched = self._on and reader.batches_enabled
        self._bytes_max = config.frame_bytes_max
        self._timeout_s = config.read_timeout_s or float(NO_LAST)
        self._step_s = (
            step_limit_s(thread.limit(None), self._timeout_s) if self._on else 0.0
        )  # of calls that give no limit
        self._routes: dict[int, Route] = {}

    def read(self, entry: int, timeout: float | None = None) -> EntryBatch | None:
        """Read one entry that is not above the LAC."""
        step_s = self.step(timeout)
        self._handle.check_open()
        if not step_s or type(entry) is not int or not 0 <= entry <= self._view.lac:
            return None
        pool = self._route(entry, timeout).pool
        link = None if pool is None else pool.take(step_s)
        if pool is None or link is None:
            return None
        try:
            got = link.read(self._ledger, entry, self._digester, step_s)
        finally:
            pool.give(link)
        if got is None:
            self._failed(pool, link.outcome)
            return None
        run, offsets, lac = got
        self._saw_lac(lac)
        return EntryBatch(self._ledger, entry, run, offsets, self._overhead)

    def batch_read(self, first: int, max_count: int, max_size: int, timeout: float | None = None) -> EntryBatch | None:
        """Read some entries with one response; see `LedgerReader.batch_read`."""
        step_s = self.step(timeout)
        self._handle.check_open()
        if not step_s or not self._batched or not type(first) is type(max_count) is type(max_size) is int:
            return None
        lac = self._view.lac
        if not 0 <= first <= lac or max_count < 0:
            return None
        route = self._route(first, timeout)
        pool = route.pool
        link = pool.take(step_s) if pool is not None and route.batches else None
        if pool is None or link is None:
            return None
        count = min(route.last, lac) - first + 1
        if not 0 < max_count < count:
            max_count = count
        if not 0 < max_size < self._bytes_max:
            max_size = self._bytes_max
        max_count = min(max_count, COUNT_MAX)
        try:
            got = link.batch_read(self._ledger, first, max_count, max_size, self._digester, step_s)
        finally:
            pool.give(link)
        return self._batch(got, link, pool)

    def read_range(self, first: int, last: int, timeout: float | None = None) -> EntryBatch | None:
        """Read all entries of a range by batch reads, one after the other; see `LedgerReader.read`."""
        if not type(first) is type(last) is int or not first <= last <= self._view.lac:
            return None
        limit_s = self._thread.limit(timeout)
        until = math.inf if limit_s is None else time.monotonic() + limit_s / 2
        batches: list[EntryBatch] = []
        while first <= last:
            left_s = until - time.monotonic()
            batch = self.batch_read(first, last - first + 1, 0, left_s) if left_s > 0 else None
            if batch is None:
                return None
            batches.append(batch)
            first = batch.last + 1
        return EntryBatch.joined(batches)

    # --- several batch reads at a time --------------------------------------------------------------------------------

    @property
    def batched(self) -> bool:
        """Whether direct batch reads may be used for this ledger, if its bookies support them."""
        return self._batched

    def sizes(self, max_count: int, max_size: int) -> RangeSizes:
        """Return how large the requests for a range are, given the limits of a batch."""
        return RangeSizes(max_count, max_size, self._bookies.config)

    def by_loop(self, begun: Coroutine[Any, Any, AioBatches], timeout: float | None) -> LoopSource:
        """Return the source of batches that the event loop begins to read."""
        return LoopSource(self._thread, self._thread.run(begun, timeout))

    def connection(self, first: int, timeout: float | None, step_s: float) -> tuple[DirectPool, DirectLink, int] | None:
        """Return a connection for batch reads from an entry on, the pool to give it back to, and the last entry that
        can be read over it; None if there is none to be had.
        """
        route = self._route(first, timeout)
        link = route.pool.take(step_s) if route.pool is not None and route.batches else None
        return None if route.pool is None or link is None else (route.pool, link, route.last)

    def ask(self, link: DirectLink, first: int, count: int, size: int, step_s: float) -> bool:
        """Send a batch read, and return whether it was sent."""
        return link.ask_batch(self._ledger, first, count, size, step_s)

    def take(
        self, link: DirectLink, pool: DirectPool, step_s: float, block: PayloadBlock | None = None, entry: int = -1
    ) -> EntryBatch | None:
        """Receive the response to one of the batch reads that were sent; in a block, if it begins with `entry`."""
        return self._batch(link.take_batch(self._digester, step_s, block, entry), link, pool)

    def _batch(self, got: Got | None, link: DirectLink, pool: DirectPool) -> EntryBatch | None:
        if got is None:
            self._failed(pool, link.outcome)
            return None
        first, run, offsets, lac = got
        if lac is not None:
            self._saw_lac(lac)
        return EntryBatch(self._ledger, first, run, offsets, self._overhead, lac)

    def left(self, began: float, timeout: float | None) -> float | None:
        """Return the limit that the event loop has for a call that began at this time of the monotonic clock."""
        limit_s = self._thread.limit(timeout)
        return timeout if limit_s is None else max(limit_s - (time.monotonic() - began), 0.0)

    def step(self, timeout: float | None) -> float:
        """Return how many seconds a step of a direct read may take; 0 if none may be tried. Raises the errors of
        closed clients.
        """
        self._thread.check()
        if timeout is None:
            return self._step_s
        limit_s = self._thread.limit(timeout)
        return step_limit_s(limit_s, self._timeout_s) if self._on else 0.0

    # --- routes -------------------------------------------------------------------------------------------------------

    def _route(self, entry: int, timeout: float | None) -> Route:
        place = entry % self._stripes
        route = self._routes.get(place)
        if (
            route is None
            or route.versioned is not self._view.versioned
            or not route.first <= entry <= route.last
            or time.monotonic() >= route.until
        ):
            route = self._routes[place] = self._thread.run(self._look(entry), timeout)
        return route

    async def _look(self, entry: int) -> Route:
        """Return the present route of an entry. It runs on the event loop, which owns all that it depends on."""
        view = self._view
        segment, last = view.segment_at(entry)
        bookie = self._reader.replicas.order(entry)[0]
        pool, batches = self._bookies.direct(bookie), self._bookies.serves_batches(bookie)
        lasting_s = ROUTE_S if pool is not None and (batches or not self._batched) else LIMITED_ROUTE_S
        return Route(
            view.versioned,
            segment.first_entry,
            NO_LAST if last is None else last,
            pool,
            batches,
            time.monotonic() + lasting_s,
        )

    def _failed(self, pool: DirectPool, outcome: int) -> None:
        """Look for another route next time, and avoid a bookie that was late."""
        self._routes.clear()
        if outcome == LATE:
            pool.avoid()

    # --- the LAC ------------------------------------------------------------------------------------------------------

    def _saw_lac(self, lac: int | None) -> None:
        if lac is not None and lac > self._view.lac and not self._view.closed:
            self._thread.run(self._take_lac(lac))

    async def _take_lac(self, lac: int) -> None:
        self._view.saw_lac(lac)
