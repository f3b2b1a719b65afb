"""What a client knows about one bookie: its address, its extensions, its connections, and whether batch reads work.

It runs on the event loop. Connections are made when a request needs one. There are up to `channels_per_bookie` for
each protocol, chosen by the ledger's id; the next request replaces a broken one.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, TypeVar, cast

from bookie.client.bookies.addresses import Found
from bookie.client.bookies.connect import Connector
from bookie.client.bookies.health import Health
from bookie.client.bookies.link import Link
from bookie.client.config import ClientConfig
from bookie.client.direct.pool import DirectPool
from bookie.client.wire.extensions import BATCH_READ, Extensions
from bookie.client.wire.request import Wire
from bookie.client.wire.v2 import WireV2
from bookie.client.wire.v3 import WireV3
from bookie.errors import BookieUnavailable, BookKeeperError

W = TypeVar("W", bound=Wire)
TICK_S = 1.0
BATCHES_REFUSED_S = 600.0
"""How long a bookie that seems to be too old for batch reads is not sent another one, in seconds."""
ADVERTISED_REFUSED_S = 1.0
"""The same for a bookie whose registration advertises batch reads: its connection was lost for another reason."""
LOOK_AGAIN_S = 1.0
"""How long a bookie that was not registered is not looked up again for its extensions, in seconds. Its session may have
ended in an outage of the metadata store, and what it supports stays unknown until it is back.
"""
TRIAL = -1
"""The number of the V2 connection on which batch reads are tried while adds are outstanding on another one."""

log = logging.getLogger(__name__)

Resolver = Callable[[str], Awaitable[Found]]


class Peer:
    """The links to one bookie, which is known by its id."""

    def __init__(
        self, bookie: str, config: ClientConfig, connector: Connector, resolve: Resolver, health: Health
    ) -> None:
        self.bookie = bookie
        self.extensions: Extensions | None = None
        """What the bookie supports beyond Apache BookKeeper's operations; None if that is not known yet."""
        self.served_batches = False
        self._unregistered_until = 0.0
        self._batches_refused_until = 0.0
        self._batches_off = False
        self._config = config
        self._connector = connector
        self._resolve = resolve
        self._health = health
        self._links: dict[int, Link[Wire]] = {}  # in V2
        self._links_v3: dict[int, Link[WireV3]] = {}
        self._connecting: set[asyncio.Task[None]] = set()
        self._ending: set[Link[Any]] = set()
        wire: Wire = WireV2(config.frame_bytes_max) if config.use_v2_wire_protocol else WireV3(config.frame_bytes_max)
        self.direct = DirectPool(bookie, connector.direct(wire), config.direct_connections_max)
        """The connections over which threads read without the event loop."""
        timeouts = [s for s in (config.add_timeout_s, config.read_timeout_s, config.bookie_info_timeout_s) if s]
        self._tick_s = min([TICK_S, *(s / 4 for s in timeouts)])

    @property
    def pending(self) -> int:
        """The number of requests that are not answered yet."""
        return sum(link.pending for link in self._all()) + self.direct.busy

    def link(self, ledger: int) -> Link[Wire]:
        """Return the connection for a ledger in the configured protocol. It may still be connecting."""
        if not self._config.use_v2_wire_protocol:
            return cast("Link[Wire]", self.link_v3(ledger))
        return self._link_v2(ledger % self._config.channels_per_bookie)

    def link_for_batch(self, ledger: int) -> Link[Wire]:
        """Return the connection for a batch read. An old bookie closes the connection on which it receives the
        first one, so that is not a connection with adds on it.
        """
        link = self.link(ledger)
        if self._config.use_v2_wire_protocol and not self.served_batches:
            return self._link_v2(TRIAL) if link.carries_adds or TRIAL in self._links else link
        trial = self._links.get(TRIAL)
        if trial is not None and not trial.pending:
            trial.retire()
        return link

    def _link_v2(self, number: int) -> Link[Wire]:
        link = self._links.get(number)
        if link is None:
            wire: Wire = WireV2(self._config.frame_bytes_max)
            link = self._links[number] = self._connect(wire)
        return link

    def link_v3(self, ledger: int) -> Link[WireV3]:
        """Return a V3 connection for a ledger, for requests that only V3 has."""
        number = ledger % self._config.channels_per_bookie
        link = self._links_v3.get(number)
        if link is None:
            link = self._links_v3[number] = self._connect(WireV3(self._config.frame_bytes_max))
        return link

    def _all(self) -> list[Link[Any]]:
        return [*self._links.values(), *self._links_v3.values()]

    def _connect(self, wire: W) -> Link[W]:
        link = Link(
            self.bookie,
            wire,
            add_timeout_s=self._config.add_timeout_s,
            tick_s=self._tick_s,
            silence_s=self._config.silence_s,
            on_end=self._ended,
            on_error=partial(self._health.failed, self.bookie),
        )
        self._ending.add(link)
        link.gone.add_done_callback(lambda _: self._ending.discard(link))
        task = asyncio.get_running_loop().create_task(self._open(link))
        self._connecting.add(task)
        task.add_done_callback(self._connecting.discard)
        return link

    async def _open(self, link: Link[Any]) -> None:
        try:
            found = await self._resolve(self.bookie)
            end = found.info.client_endpoint()
            if end is None:
                raise BookieUnavailable("it publishes no endpoint for clients")
            self._learn(found)
            await self._connector.connect(link, end.host, end.port)
            if link.broken is None:
                self.direct.endpoint = link.endpoint(end.host)
        except BookKeeperError as error:
            link.fail(error)
        except Exception as error:  # whatever it was, it must fail the waiting requests
            log.exception("cannot connect bookieId=%s", self.bookie)
            link.fail(BookieUnavailable(f"unexpected error while connecting, please report it: {error!r}"))
        finally:
            if not link.connected and not link.gone.done():
                link.gone.set_result(None)

    def _ended(self, link: Link[Any]) -> None:
        """Forget a broken connection, and note if it broke during a V2 batch read: old bookies close it then."""
        self.direct.endpoint = None
        self._links = {number: other for number, other in self._links.items() if other is not link}
        self._links_v3 = {number: other for number, other in self._links_v3.items() if other is not link}
        if link.closed_on_batch:
            self.refused_batch()

    def refused_batch(self) -> None:
        """Note that the bookie did not know a batch read: it said so, or in V2 closed the connection. Entries are read
        one by one for a while, unless batch reads have worked before.
        """
        advertised = self.extensions is not None and BATCH_READ in self.extensions
        if not self._config.use_v2_wire_protocol:
            if self.extensions is not None:
                self.extensions.withdraw(BATCH_READ)
        elif not self.served_batches:
            seconds = ADVERTISED_REFUSED_S if advertised else BATCHES_REFUSED_S
            self._batches_refused_until = asyncio.get_running_loop().time() + seconds
            if not advertised:
                self._say_unbatched()

    def _say_unbatched(self) -> None:
        if not self._batches_off:
            self._batches_off = True
            log.info("reading single entries: bookieId=%s does not support batch reads", self.bookie)

    def served_batch(self) -> None:
        """Note that the bookie supports batch reads."""
        self.served_batches = True
        if self._batches_off:
            self._batches_off = False
            log.info("reading in batches: bookieId=%s supports batch reads by now", self.bookie)

    def batches(self) -> bool:
        """Return whether a batch read may be tried, and if not, say so once in the log."""
        if not self.may_batch and self.extensions is not None and not self._config.use_v2_wire_protocol:
            self._say_unbatched()
        return self.may_batch

    @property
    def may_batch(self) -> bool:
        """Whether a batch read may be tried."""
        if self._config.use_v2_wire_protocol:
            return self.served_batches or asyncio.get_running_loop().time() >= self._batches_refused_until
        return not self.unregistered if self.extensions is None else BATCH_READ in self.extensions

    @property
    def unregistered(self) -> bool:
        """Whether the bookie had no registration, or none that could be read, when it was looked up a moment ago."""
        return self.extensions is None and asyncio.get_running_loop().time() < self._unregistered_until

    def serves_batches(self) -> bool:
        """Return whether it is known that the bookie serves batch reads."""
        if self._config.use_v2_wire_protocol:
            return self.served_batches
        return self.extensions is not None and BATCH_READ in self.extensions

    async def known(self) -> Extensions:
        """Return the extensions that the bookie supports, reading its registration if needed; none while it has none.

        Raises BookieUnavailable or MetadataStoreError.
        """
        loop = asyncio.get_running_loop()
        if self.extensions is None and loop.time() >= self._unregistered_until:
            self._learn(await self._resolve(self.bookie))
            if self.extensions is None:
                self._unregistered_until = loop.time() + LOOK_AGAIN_S
        return self.extensions or Extensions()

    def _learn(self, found: Found) -> None:
        advertised = found.info.v3_extensions()
        if found.read and (advertised or self.extensions is None):  # it may be upgraded while it is known
            self.extensions = Extensions(advertised)

    async def close(self, error: BookKeeperError) -> None:
        """Fail everything outstanding, and wait until the connections are closed."""
        for link in self._all():
            link.fail(error)
        for task in list(self._connecting):
            task.cancel()
        if self._connecting:
            await asyncio.wait(self._connecting)
        if self._ending:
            await asyncio.wait([link.gone for link in self._ending])
