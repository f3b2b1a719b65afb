"""Adds that the calling thread does over direct connections to all bookies of an entry's write set. Any thread.

The event loop chooses the bookies, and takes over every add that did not end well at once: with the same entry, which
stays among the ledger's pending adds until it is acknowledged or the ledger has failed. Bookies beyond the ack quorum
may answer later; see `bookie._fast.client.direct_adds`.
"""

import time

from typing_extensions import Buffer

from bookie._fast.client.direct_link import LATE, LOST, MALFORMED, REFUSED, DirectLink
from bookie._fast.client.write_window import Add
from bookie.client.bookies import BookieClient
from bookie.client.direct.limits import step_limit_s
from bookie.client.direct.pool import AVOIDED_S, DirectPool
from bookie.client.event_loop.thread import LoopThread
from bookie.client.ledgers.writer import LedgerWriter

__all__ = ["DirectAdds"]

PATIENCE_S = 0.25
"""How long a direct add waits for the bookies, in seconds."""
AGAIN_S, UNKNOWN_S = 0.05, 1.0
"""How soon the event loop is asked again where entries are stored, in seconds; the second if it has not reached all of
their bookies.
"""
ANSWERED_S = 30.0
"""How long an answer of the event loop, which asks the metadata store, is waited for before it is asked again."""
FAILURES = frozenset({LATE, LOST, MALFORMED, REFUSED})


class Routes:
    """The connections to the bookies of each write set, as the event loop knew them.

    `sets` are the write sets by the id of an entry, modulo their number; see `ledgers.direct_writes.Placed` for the
    others.
    """

    __slots__ = ("changes", "owing", "sets", "since_s")

    def __init__(self, pools: list[DirectPool], quorums: tuple[int, int], changes: int, since_s: float) -> None:
        size = len(pools)
        write_quorum, ack_quorum = quorums
        self.sets = [[pools[(place + k) % size] for k in range(write_quorum)] for place in range(size)]
        self.owing = ack_quorum < write_quorum
        self.changes = changes
        self.since_s = since_s


class DirectAdds:
    """The direct adds of one handle. They begin after its first entry, so a ledger of one entry needs nothing more."""

    def __init__(self, thread: LoopThread, writer: LedgerWriter, bookies: BookieClient) -> None:
        self._thread = thread
        self._writer = writer
        self._bookies = bookies
        self._on = bookies.directly and writer.plain
        self._adder = writer.adder() if self._on else None
        self._step_s = step_limit_s(thread.limit(None), PATIENCE_S)
        self._routes: Routes | None = None
        self._ask_at_s = 0.0
        self._finding = False
        self._doubted = 0

    def append(self, data: Buffer, timeout: float | None = None) -> int | Add | None:
        """Add the next entry and wait until it is acknowledged.

        Return its id; its pending add if the event loop goes on with it; None if nothing was added.
        """
        adder, writer = self._adder, self._writer
        if adder is None or writer.pending:
            return None
        self._thread.check()
        step_s = self._step_s if timeout is None else step_limit_s(self._thread.limit(timeout), PATIENCE_S)
        if not step_s:
            return None
        now_s = time.monotonic()
        if adder.owing:
            adder.collect()
        if adder.doubted != self._doubted:  # a bookie was late: see `_look_at`
            self._doubted, self._routes, self._ask_at_s = adder.doubted, None, now_s + AVOIDED_S
        routes = self._routes
        entry = writer.last_add_pushed + 1
        if routes is None:
            if entry and now_s >= self._ask_at_s:
                self._ask_at_s = now_s + ANSWERED_S
                self._thread.submit(self._find())
            return None
        pools = routes.sets[entry % len(routes.sets)]
        if routes.owing and not all(pool.may_owe for pool in pools):
            return None
        links = self._take(pools)
        if links is None:
            return None
        try:
            got = adder.add(data, entry, routes.changes, now_s, links, pools, routes.since_s, step_s)
        finally:
            for pool, link in zip(pools, links, strict=True):
                if link is not None:  # else its response is due, and the adder keeps it
                    pool.give(link)
        if not isinstance(got, int):
            self._look_at(got, routes, [link for link in links if link is not None])
        return got

    def _take(self, pools: list[DirectPool]) -> list[DirectLink | None] | None:
        """Take a connection from each pool, or none. The event loop adds while new connections are established."""
        if len(pools) == 1:
            link = pools[0].take(0.0)
            return None if link is None else [link]
        links: list[DirectLink | None] = []
        whole = False
        try:
            for pool in pools:
                links.append(pool.take(0.0) if pool.endpoint is not None else None)
            whole = None not in links
            return links if whole else None
        finally:
            if not whole:
                for pool, taken in zip(pools, links, strict=False):
                    if taken is not None:
                        pool.give(taken)

    def _look_at(self, got: Add | None, routes: Routes, links: list[DirectLink]) -> None:
        """Decide when to try again after an add that was not done directly."""
        if got is None:
            if not self._adder_agrees(routes) or any(link.born_s >= routes.since_s for link in links):
                self._routes = None
            return
        outcomes = {link.outcome for link in links}
        if outcomes & FAILURES:
            self._routes = None
            # Reads go on: they need not wait for the bookie's disk, as adds do.
            self._ask_at_s = time.monotonic() + (AVOIDED_S if LATE in outcomes else AGAIN_S)

    def _adder_agrees(self, routes: Routes) -> bool:
        return self._adder is not None and self._adder.undisturbed(routes.changes)

    async def _find(self) -> None:
        """Look for routes. It runs on the event loop, which owns all that they depend on."""
        if self._finding:  # the metadata store does not answer
            return
        self._finding = True
        ask_at_s = time.monotonic() + UNKNOWN_S
        try:
            if self._pools(self._writer.known.metadata.segments[-1].bookies) is None:
                return
            ask_at_s = time.monotonic() + AGAIN_S
            placed = await self._writer.placed()
            if placed is None or (pools := self._pools(placed.bookies)) is None:
                return
            metadata = self._writer.known.metadata
            quorums = metadata.write_quorum, metadata.ack_quorum
            self._routes = Routes(pools, quorums, placed.changes, placed.since_s)
        finally:
            self._finding = False
            self._ask_at_s = ask_at_s

    def _pools(self, bookies: tuple[str, ...]) -> list[DirectPool] | None:
        pools = [pool for bookie in bookies if (pool := self._bookies.direct(bookie)) is not None]
        return pools if len(pools) == len(bookies) else None
