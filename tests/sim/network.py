"""The network of a simulated world: connections between a client and its bookies, and their faults.

A connection keeps the order of what is sent on it, in each direction. Two connections are independent, so data on an
old one may arrive after data on a new one. A link that is blocked holds everything back until it is healed, as TCP
does, or loses it: then nothing later on that connection arrives either, until it is noticed to be dead. A client that
crashes leaves behind what it sent.
"""

import math
import random
from collections.abc import Callable

from tests.sim.loop import VirtualLoop
from tests.sim.model_bookie import ModelBookie

__all__ = ["Connection", "Link"]


class Connection:
    """A TCP connection from a client to a bookie. `on_lost` is called once, unless the client closed it."""

    def __init__(self, link: "Link", on_lost: Callable[[], None]) -> None:
        self.link = link
        self.on_lost = on_lost
        self.open = True
        self.in_flight = 0
        self.life = link.bookie.incarnation
        self._due = [0.0, 0.0]  # for the directions to the bookie and to the client
        self._gap = [False, False]
        self._made = False
        self.made_s = math.inf
        self._unsent: list[Callable[[], None]] = []
        self._drains: list[tuple[int, Callable[[], None]]] = []
        link.connections.append(self)
        link.loop.event(2 * link.delay(), self._connect)

    def request(self, work: Callable[[], None]) -> None:
        """Have the bookie execute a function when the request has arrived."""
        self.in_flight += 1
        if self._made:
            self._send(0, work)
        else:
            self._unsent.append(work)

    def when_drained(self, limit: int, notify: Callable[[], None]) -> None:
        """Call a function when no more than `limit` requests are in flight."""
        self._drains.append((limit, notify))

    def answer(self, work: Callable[[], None]) -> None:
        """Have the client execute a function when the answer has arrived."""
        self._send(1, work)

    def close(self) -> None:
        """Close it by the client: requests in flight may still arrive, answers never do."""
        self.open = False
        if self in self.link.connections:
            self.link.connections.remove(self)

    def lose(self) -> None:
        """Break the connection, and inform the client."""
        if self.open:
            self.close()
            self.on_lost()

    def give_up(self) -> None:
        """Handle that the connect timeout is over."""
        if not self._made:
            self.lose()

    def _connect(self) -> None:
        link = self.link
        if not self.open:
            return
        if any(link.blocked):
            link.waiting.append(self._connect)
            return
        if not link.bookie.up:
            self.lose()
            return
        self.life = link.bookie.incarnation
        self._made = True
        self.made_s = link.loop.time()
        unsent, self._unsent = self._unsent, []
        for work in unsent:
            self._send(0, work)

    def _send(self, way: int, work: Callable[[], None]) -> None:
        link = self.link
        due = max(self._due[way], link.loop.time() + link.delay())
        self._due[way] = due
        link.loop.event_at(due, self._arrive, way, work)

    def _arrive(self, way: int, work: Callable[[], None]) -> None:
        link = self.link
        if link.blocked[way]:
            if link.lossy:
                self._gap[way] = True
                link.loop.event(link.notice_s, self.lose)
            else:
                link.held[way].append(lambda: self._deliver(way, work))
            return
        self._deliver(way, work)

    def _deliver(self, way: int, work: Callable[[], None]) -> None:
        if self._gap[way]:
            return
        if way == 0:
            self.in_flight -= 1
            if self._drains:
                ready = [notify for limit, notify in self._drains if self.in_flight <= limit]
                self._drains = [one for one in self._drains if self.in_flight > one[0]]
                for notify in ready:
                    self.link.loop.event(0, notify)
            if self.link.bookie.up and self.life == self.link.bookie.incarnation:
                self.link.bookie.work(work)
        elif self.open:
            work()


class Link:
    """The link between one client and one bookie, with a latency of `base_s` and up to `jitter_s` more each way.

    `notice_s` is the time until the loss of data on a connection is noticed.
    """

    def __init__(
        self, loop: VirtualLoop, rng: random.Random, bookie: ModelBookie, base_s: float, jitter_s: float
    ) -> None:
        self.loop = loop
        self.bookie = bookie
        self.base_s = base_s
        self.jitter_s = jitter_s
        self.blocked = [False, False]
        self.lossy = False
        self.notice_s = 1.0
        self.held: list[list[Callable[[], None]]] = [[], []]
        self.waiting: list[Callable[[], None]] = []
        self.connections: list[Connection] = []
        self._random: Callable[[], float] = rng.random

    def delay(self) -> float:
        return self.base_s + self.jitter_s * self._random()

    def block(self, *, to_bookie: bool, to_client: bool, lossy: bool) -> None:
        self.blocked = [to_bookie, to_client]
        self.lossy = lossy

    def heal(self) -> None:
        """Deliver what was held back, and break connections that lost data or whose other end has changed."""
        self.blocked = [False, False]
        held, self.held = self.held, [[], []]
        for way in held:
            for deliver in way:
                deliver()
        for connection in list(self.connections):
            if any(connection._gap) or (connection._made and connection.life != self.bookie.incarnation):
                self.loop.event(self.delay(), connection.lose)
        waiting, self.waiting = self.waiting, []
        for connect in waiting:
            self.loop.event(self.delay(), connect)

    def reset(self) -> None:
        """Break all connections, as when the bookie's process ends; behind a block that is not noticed."""
        if not self.blocked[1]:
            for connection in list(self.connections):
                self.loop.event(self.delay(), connection.lose)
