"""Adds as a thread does them over direct connections, in a modelled world: claims are real, only the sockets are not.

What runs on a thread is a task here, so another task can do anything between the claim of an entry and its end.
"""

import asyncio
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, cast

import numpy as np

from bookie._fast.client.direct_adds import DirectAdder
from bookie._fast.client.write_window import Add
from bookie.client.ledgers.direct_writes import Placed
from bookie.client.ledgers.writer import LedgerWriter
from tests.sim.client_bookies import ClientBookies
from tests.sim.network import Connection

__all__ = ["DirectLinks", "DirectWriter"]

MOST = 3
"""The highest number of direct connections to one bookie."""
LOST = -1
"""The code of a response that never arrives."""


class DirectLinks:
    """The direct connections of one client. Each is used for one add at a time, until its response has arrived."""

    def __init__(self, bookies: ClientBookies) -> None:
        self._bookies = bookies
        self._all: dict[str, list[Connection]] = {}
        self._busy: dict[Connection, Callable[[], None]] = {}

    def connected(self, bookie: str) -> bool:
        """Return whether there is a connection to a bookie; if not, begin to make one."""
        found = self._all.get(bookie)
        if not found:
            self._connect(bookie)
            return False
        return any(one.made_s < math.inf for one in found)

    def take(self, bookie: str, since_s: float) -> Connection | None:
        """Return a connection to a bookie that is not in use, if it was established before `since_s`."""
        idle = [one for one in self._all.get(bookie, ()) if one not in self._busy]
        if not idle:
            if len(self._all.get(bookie, ())) < MOST:
                self._connect(bookie)
            return None
        return next((one for one in reversed(idle) if self.old_enough(one, since_s)), None)

    def old_enough(self, connection: Connection, since_s: float) -> bool:
        """Return whether a connection was established before this time."""
        return connection.made_s < since_s

    def use(self, connection: Connection, lost: Callable[[], None]) -> None:
        """Keep a connection for an add; `lost` is called if it is lost before the response arrives."""
        self._busy[connection] = lost

    def give(self, connection: Connection) -> None:
        """Take a connection back."""
        self._busy.pop(connection, None)

    def drop(self, bookie: str, connection: Connection) -> None:
        """Close a connection on which a response is due, which is lost."""
        connection.close()
        self._lost(bookie, connection)

    def _connect(self, bookie: str) -> None:
        made: list[Connection] = []
        made.append(Connection(self._bookies.links[bookie], lambda: self._lost(bookie, made[0])))
        self._all.setdefault(bookie, []).append(made[0])
        self._bookies.loop.event(self._bookies.config.connect_timeout_s, made[0].give_up)

    def _lost(self, bookie: str, connection: Connection) -> None:
        if connection in self._all.get(bookie, ()):
            self._all[bookie].remove(connection)
        lost = self._busy.pop(connection, None)
        if lost is not None:
            lost()


@dataclass(frozen=True, slots=True)
class At:
    """What stands for the pool of connections to a bookie."""

    bookie: str


@dataclass(slots=True)
class _OnItsWay:
    """An entry that was sent, in the order of its write set, over these connections."""

    entry: int
    record: bytes
    links: dict[str, Connection]
    size: int
    """The size of the ensemble."""
    done: "asyncio.Future[None]"
    """Set when an ack quorum has answered, or a bookie has failed."""
    codes: dict[str, int] = field(default_factory=dict)
    owed: set[str] = field(default_factory=set)
    """The bookies whose response is due after the entry was acknowledged."""


class DirectWriter:
    """The direct adds of one writer. They wait for `patience_s` at most."""

    watched = False
    """Whether the event loop should call `collect`: here, responses are handled as they arrive."""

    def __init__(self, writer: LedgerWriter, bookies: ClientBookies, patience_s: float) -> None:
        self._writer = writer
        self._bookies = bookies
        self._links = DirectLinks(bookies)
        self._patience_s = patience_s
        self._quorum = writer.known.metadata.ack_quorum
        self._adder = writer.adder()
        writer._adder = cast("DirectAdder", self)  # it has the doubts
        self._placed: Placed | None = None
        self._asking: asyncio.Task[None] | None = None
        self._adding: set[asyncio.Task[None]] = set()
        self._doubts: list[tuple[int, int, At, bytes]] = []

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
        done: asyncio.Future[None] = self._bookies.loop.create_future()
        task = asyncio.ensure_future(self._store(_OnItsWay(entry, bytes(view), links, size, done)))
        self._adding.add(task)
        task.add_done_callback(self._adding.discard)
        return add

    async def _ask(self) -> None:
        self._placed = await self._writer.placed()

    async def _store(self, add: "_OnItsWay") -> None:
        """Send the claimed entry to all bookies, end its claim, and await the responses that are owed then."""
        loop, key = self._bookies.loop, self._writer.digest.master_key
        until_s = loop.time() + self._patience_s
        for name, link in add.links.items():
            self._links.use(link, partial(self._answered, add, name, LOST))
        for name, link in add.links.items():
            reply = partial(self._replied, add, name)
            link.request(partial(link.link.bookie.add, add.record[4:], key, 0, reply, deferred=False))
        try:
            async with asyncio.timeout_at(until_s):
                await add.done
        except TimeoutError:
            self._placed = None
        finally:
            acked = self.acked(add.codes, list(add.links))
            if acked:
                add.owed.update(add.links.keys() - add.codes.keys())
                loop.event_at(until_s, self._drop, add)
            else:
                self._placed = None
                self._drop(add)
            if self._bookies.alive:
                self._adder.settle(acked)

    def _replied(self, add: "_OnItsWay", name: str, code: int, *_: Any) -> None:
        """Send a response on its way, at the bookie."""
        add.links[name].answer(lambda: self._answered(add, name, code))

    def _answered(self, add: "_OnItsWay", name: str, code: int) -> None:
        """Handle a response, or that there will be none."""
        if name in add.codes:
            return
        add.codes[name] = code
        self._links.give(add.links[name])
        if name in add.owed:
            if code:
                self._doubt(add, name)
        elif not add.done.done() and (code or self.enough(add.codes)):
            add.done.set_result(None)

    def _drop(self, add: "_OnItsWay") -> None:
        """Close the connections on which a response is still due: it is lost."""
        for name in [name for name in add.links if name not in add.codes]:
            self._links.drop(name, add.links[name])

    def enough(self, codes: dict[str, int]) -> bool:
        """Return whether an ack quorum has stored the entry."""
        return sum(not code for code in codes.values()) >= self._quorum

    def acked(self, codes: dict[str, int], names: list[str]) -> int:
        """Return the places of the bookies that have stored the entry, as bits; 0 if it cannot be acknowledged."""
        if not self.enough(codes) or any(codes.values()):
            return 0
        return sum(1 << k for k, name in enumerate(names) if name in codes)

    # --- what bookies owe after the entry was acknowledged ------------------------------------------------------------

    def _doubt(self, add: "_OnItsWay", name: str) -> None:
        """Have the event loop send the entry to this bookie again."""
        if self._bookies.alive:
            self._placed = None
            self._doubts.append((add.entry, (add.entry + list(add.links).index(name)) % add.size, At(name), add.record))
            self._writer.take_over()

    def doubtful_adds(self) -> list[tuple[int, int, At, bytes]]:
        """Return the responses that were late, bad or lost, and forget them."""
        doubts, self._doubts = self._doubts, []
        return doubts
