"""Adds as a thread does them over direct connections, in a modelled world: claims are real, only the sockets are not.

What runs on a thread is a task here, so another task can do anything between the claim of an entry and its end.
"""

import asyncio
import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from bookie._fast.client.write_window import Add
from bookie.client.ledgers.direct_writes import Placed
from bookie.client.ledgers.writer import LedgerWriter
from tests.sim.client_bookies import ClientBookies
from tests.sim.network import Connection

__all__ = ["DirectLinks", "DirectWriter"]


class DirectLinks:
    """The direct connections of one client, one to each bookie."""

    def __init__(self, bookies: ClientBookies) -> None:
        self._bookies = bookies
        self._open: dict[str, Connection] = {}

    def connected(self, bookie: str) -> bool:
        """Return whether there is a connection to a bookie; if not, begin to make one."""
        found = self._open.get(bookie)
        if found is None:
            found = self._open[bookie] = Connection(self._bookies.links[bookie], lambda: self._lost(bookie))
            self._bookies.loop.event(self._bookies.config.connect_timeout_s, found.give_up)
        return found.made_s < math.inf

    def take(self, bookie: str, since_s: float) -> Connection | None:
        """Return the connection to a bookie, if it was established before `since_s`."""
        found = self._open.get(bookie)
        return found if found is not None and self.old_enough(found, since_s) else None

    def old_enough(self, connection: Connection, since_s: float) -> bool:
        """Return whether a connection was established before this time."""
        return connection.made_s < since_s

    def drop(self, bookie: str) -> None:
        """Close a connection on which an answer is due."""
        if bookie in self._open:
            self._open[bookie].close()
            self._lost(bookie)

    def _lost(self, bookie: str) -> None:
        self._open.pop(bookie, None)


class DirectWriter:
    """The direct adds of one writer. They wait for `patience_s` at most."""

    def __init__(self, writer: LedgerWriter, bookies: ClientBookies, patience_s: float) -> None:
        self._writer = writer
        self._bookies = bookies
        self._links = DirectLinks(bookies)
        self._patience_s = patience_s
        self._adder = writer.adder()
        self._placed: Placed | None = None
        self._asking: asyncio.Task[None] | None = None
        self._adding: set[asyncio.Task[None]] = set()

    async def append(self, payload: bytes) -> Add | None:
        """Begin to add an entry, or return None if it cannot be done directly."""
        for bookie in self._writer.known.metadata.segments[-1].bookies:
            if not self._links.connected(bookie):
                await asyncio.sleep(self._patience_s)
                break
        placed, entry = self._placed, self._writer.last_add_pushed + 1
        if placed is None:
            if self._asking is None or self._asking.done():
                self._asking = asyncio.ensure_future(self._ask())
            return None
        size, copies = len(placed.bookies), self._writer.known.metadata.write_quorum
        names = [placed.bookies[(entry + k) % size] for k in range(copies)]
        links = {name: link for name in names if (link := self._links.take(name, placed.since_s)) is not None}
        add = None
        if len(links) == len(names):
            add = self._adder.claim(payload, entry, placed.changes, self._bookies.loop.time())
        if add is None:
            if len(links) < len(names) or not self._adder.undisturbed(placed.changes):
                self._placed = None
            return None
        view, _, _ = self._writer._window.records(np.array([entry]))
        task = asyncio.ensure_future(self._store(bytes(view)[4:], links))
        self._adding.add(task)
        task.add_done_callback(self._adding.discard)
        return add

    async def _ask(self) -> None:
        self._placed = await self._writer.placed()

    async def _store(self, stored: bytes, links: dict[str, Connection]) -> None:
        """Send the claimed entry to all bookies, and end its claim."""
        key = self._writer.digest.master_key
        codes: dict[str, int] = {}
        done: asyncio.Future[None] = self._bookies.loop.create_future()

        def answered(name: str, code: int) -> None:
            codes[name] = code
            if not done.done() and (code or len(codes) == len(links)):
                done.set_result(None)

        def reply_to(name: str, link: Connection) -> Callable[[int, Any, bool], None]:
            return lambda code, *_: link.answer(lambda: answered(name, code))

        for name, link in links.items():
            there = link.link.bookie
            link.request(partial(there.add, stored, key, 0, reply_to(name, link), deferred=False))
        try:
            async with asyncio.timeout(self._patience_s):
                await done
        except TimeoutError:
            self._placed = None
        finally:
            well = self.well(codes, len(links))
            for name in links.keys() - codes.keys():
                self._links.drop(name)
            if not well:
                self._placed = None
            if self._bookies.alive:
                self._adder.settle(well)

    def well(self, codes: dict[str, int], copies: int) -> bool:
        """Return whether all bookies have stored the entry."""
        return len(codes) == copies and not any(codes.values())
