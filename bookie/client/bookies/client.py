"""All bookies, by id, on asyncio. It implements `contracts.Bookies` over connections that are made on demand."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection
from random import Random
from typing import Self

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer

from bookie.availability import AvailableEntries
from bookie.client.bookies.addresses import Registered, resolver
from bookie.client.bookies.announcing import Announcements
from bookie.client.bookies.batch_stats import BatchStats
from bookie.client.bookies.connect import Connector
from bookie.client.bookies.health import Health
from bookie.client.bookies.peer import Peer
from bookie.client.bookies.sender import Sender
from bookie.client.config import ClientConfig
from bookie.client.contracts import Fallback, SenderOwner
from bookie.client.direct.pool import DirectPool
from bookie.client.entries.batch import StoredBatch
from bookie.client.entries.read_answers import ReadAnswers
from bookie.client.wire.answers_v3 import LacAnswer, ReadAnswer
from bookie.client.wire.bookie_space import BookieInfo
from bookie.client.wire.extensions import BOOKIE_LOAD, WRITE_CLOSE
from bookie.client.wire.tls import auth_of, tls_of
from bookie.errors import BookKeeperError, ClientClosed, IllegalOperation, IncorrectParameter, TooManyRequests

__all__ = ["BookieClient"]


class BookieClient:
    """Requests to single bookies. It belongs to the event loop on which it was created.

    End it with `close`, or use it as an async context manager. Every call may raise BookieUnavailable,
    RequestTimeout, ClientClosed or SecurityError besides the errors that it documents.

    Args:
        config: The settings; None means the defaults.
        registered: Returns what a bookie publishes, as `MetadataStore.info` does. Without it, bookie ids must be
            `host:port`, and bookies are assumed to support no V3 extension.
        connector: How connections are made; None means as `config` says.
        chance: The source of randomness.
        health_checks: Returns whether bookies that fail too often may be quarantined.
    """

    def __init__(
        self,
        config: ClientConfig | None = None,
        registered: Registered | None = None,
        *,
        connector: Connector | None = None,
        chance: Random | None = None,
        health_checks: Callable[[], Awaitable[bool]] | None = None,
    ) -> None:
        self.config = config or ClientConfig()
        self._v3 = not self.config.use_v2_wire_protocol
        self._connector = connector or connector_of(self.config)
        self._resolve = resolver(registered)
        self.health = Health(self.config, chance or Random(), asyncio.get_running_loop().time, health_checks)
        self.batch_stats = BatchStats()
        self.announcements = Announcements(self.write_close)
        self._peers: dict[str, Peer] = {}
        self._closed = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Fail everything outstanding with ClientClosed, and wait until all connections are closed. Idempotent.

        Announcements that ledgers ended get a second before.
        """
        try:
            await self.announcements.settle()
        finally:
            self._closed = True
            for peer in self._peers.values():
                peer.direct.close()
            error = ClientClosed("the client was closed")
            await asyncio.gather(*(peer.close(error) for peer in self._peers.values()))

    # --- adds ---------------------------------------------------------------------------------------------------------

    def adds(
        self,
        bookie: str,
        ledger: int,
        master_key: bytes,
        owner: SenderOwner,
        *,
        flags: int = 0,
        deferred_sync: bool = False,
    ) -> Sender:
        """Open a sender. Raises ClientClosed, and IllegalOperation if deferred sync is requested with V2."""
        if deferred_sync and not self._v3:
            raise IllegalOperation(f"{bookie}: ledger {ledger}: V2 has no deferred sync; set useV2WireProtocol=false")
        link = self._peer(bookie).link(ledger)
        return link.sender(ledger, master_key, owner, flags=flags, deferred_sync=deferred_sync)

    async def add(
        self, bookie: str, ledger: int, entry: int, stored: Buffer, master_key: bytes, *, flags: int = 0
    ) -> None:
        """Store one entry, given with header and digest.

        Raises LedgerFenced, UnauthorizedAccess, BookieReadOnly or WriteError.
        """
        link = self._peer(bookie).link(ledger)
        await link.ask(link.wire.add(ledger, entry, stored, master_key, flags, self.config.add_timeout_s))

    # --- reads --------------------------------------------------------------------------------------------------------

    async def read(
        self, bookie: str, ledger: int, entry: int, *, flags: int = 0, master_key: bytes | None = None
    ) -> ReadAnswer:
        """Read one entry as stored, or the last entry if `entry` is -1. A V2 response has no LAC.

        Raises NoSuchLedger, NoSuchEntry or ReadError.
        """
        link = self._peer(bookie).link(ledger)
        answer: ReadAnswer = await link.ask(
            link.wire.read(ledger, entry, flags, master_key, self.config.read_timeout_s)
        )
        return answer

    async def read_many(self, bookie: str, ledger: int, entries: NDArray[np.int64]) -> ReadAnswers:
        """Read these entries, given in ascending order, with single reads.

        Returns all responses that arrived, or raises the error if none arrived.
        """
        return await self._peer(bookie).link(ledger).read_many(ledger, entries, self.config.read_timeout_s)

    async def batch_read(
        self,
        bookie: str,
        ledger: int,
        start: int,
        max_count: int,
        max_size: int,
        *,
        flags: int = 0,
        master_key: bytes | None = None,
    ) -> StoredBatch:
        """Read consecutive entries as stored, one or more, beginning with `start`.

        `max_size` is the highest size of the response in bytes: at most a frame; 0 returns one entry. Raises
        IllegalOperation where `batches` returns False, NoSuchLedger, NoSuchEntry or ReadError.
        """
        peer = self._peer(bookie)
        if self._v3:
            await peer.known()
        if not peer.batches():
            why = (
                "is not registered now, so it is unknown whether it supports"
                if peer.unregistered
                else "does not support"
            )
            raise IllegalOperation(f"{bookie}: ledger {ledger}: it {why} batch reads; read entry by entry")
        link = peer.link_for_batch(ledger)
        size = min(max_size, self.config.frame_bytes_max)
        timeout_s = self.config.read_timeout_s
        began_s = time.monotonic()
        try:
            batch: StoredBatch = await link.ask(
                link.wire.batch_read(ledger, start, max_count, size, flags, master_key, timeout_s)
            )
        except BookKeeperError as error:
            self.batch_stats.failed(time.monotonic() - began_s)
            if isinstance(error, IllegalOperation):
                peer.refused_batch()
            raise
        self.batch_stats.read(time.monotonic() - began_s, len(batch), len(batch.buffer))
        peer.served_batch()
        return batch

    async def batch_read_entries(
        self,
        bookie: str,
        ledger_id: int,
        start_entry_id: int,
        max_count: int,
        max_size: int,
        flags: int = 0,
        master_key: bytes | None = None,
        *,
        allow_fast_fail: bool = False,
    ) -> StoredBatch:
        """Read consecutive entries of a ledger as one bookie stores them. Their digests are not verified.

        Args:
            bookie: The id of the bookie.
            ledger_id: The id of the ledger.
            start_entry_id: The id of the first entry.
            max_count: The highest number of entries; 0 means no limit.
            max_size: The highest size of the response in bytes, at most a frame; 0 returns one entry.
            flags: Bits of `Flags`: FENCE also fences the ledger, HIGH_PRIORITY asks for preferred treatment.
            master_key: The ledger's master key, which is needed for FENCE.
            allow_fast_fail: Raise TooManyRequests, instead of waiting, if too much output is queued for the bookie.

        Returns:
            One entry or more; call `StoredBatch.verify` on it.

        Raises:
            IncorrectParameter: The start, the count or the size is negative.
            IllegalOperation: The bookie does not support batch reads.
            NoSuchLedger: The bookie has no data of this ledger.
            NoSuchEntry: The bookie does not hold the first entry.
            ReadError: The bookie failed to read the first entry.
        """
        for name, value in (("start_entry_id", start_entry_id), ("max_count", max_count), ("max_size", max_size)):
            if value < 0:
                raise IncorrectParameter(f"{bookie}: batch read of ledger {ledger_id}: {name} {value}; give 0 or more")
        if allow_fast_fail and self._peer(bookie).link_for_batch(ledger_id).full:
            raise TooManyRequests(
                f"{bookie}: batch read of ledger {ledger_id}: too much output is queued for the bookie; try again later"
            )
        return await self.batch_read(
            bookie, ledger_id, start_entry_id, max_count, max_size, flags=flags, master_key=master_key
        )

    def batches(self, bookie: str) -> bool:
        """Return whether a batch read may be tried at this bookie; also if nothing is known about it yet."""
        return self._peer(bookie).batches()

    @property
    def unbatched(self) -> int:
        """The number of bookies known to this client from which entries are read one by one at present."""
        return sum(not peer.may_batch for peer in self._peers.values())

    def fell_back(self, reason: Fallback) -> None:
        """Note that entries that were requested in a batch are read one by one."""
        self.batch_stats.fell_back(reason)

    def serves_batches(self, bookie: str) -> bool:
        """Return whether it is known that this bookie serves batch reads."""
        return self._peer(bookie).serves_batches()

    # --- direct connections -------------------------------------------------------------------------------------------

    @property
    def directly(self) -> bool:
        """Whether threads may use direct connections. With `throttle` all requests pass the limit of the event loop."""
        return self.config.direct_connections_max > 0 and self.config.throttle_per_s <= 0

    def direct(self, bookie: str) -> DirectPool | None:
        """Return the direct connections to a bookie, or None until the event loop has connected to it."""
        pool = self._peer(bookie).direct
        return None if pool.endpoint is None else pool

    async def wait_for_lac(self, bookie: str, ledger: int, previous_lac: int, timeout_ms: int) -> ReadAnswer:
        """Wait at the bookie until its LAC exceeds `previous_lac`; the response brings the next entry along if it is
        there.

        With V2 it is a plain read of the LAC, which does not wait.
        """
        if not self._v3:
            return await self.read(bookie, ledger, -1)
        link = self._peer(bookie).link_v3(ledger)
        answer: ReadAnswer = await link.ask(
            link.wire.wait_for_lac(ledger, previous_lac, timeout_ms, self.config.read_timeout_s)
        )
        return answer

    # --- only in V3 ---------------------------------------------------------------------------------------------------

    async def read_lac(self, bookie: str, ledger: int) -> LacAnswer:
        """Read the explicit LAC and the last entry of a ledger, both as stored.

        Raises NoSuchLedger, NoSuchEntry (the bookie has neither of them) or ReadError.
        """
        link = self._peer(bookie).link_v3(ledger)
        answer: LacAnswer = await link.ask(link.wire.read_lac(ledger, self.config.read_timeout_s))
        return answer

    async def write_lac(self, bookie: str, ledger: int, lac: int, packet: bytes, master_key: bytes) -> None:
        """Store an explicit LAC, and return when it is durable. Raises UnauthorizedAccess, BookieReadOnly or
        WriteError.
        """
        link = self._peer(bookie).link_v3(ledger)
        await link.ask(link.wire.write_lac(ledger, lac, packet, master_key, self.config.read_timeout_s))

    async def force(self, bookie: str, ledger: int) -> None:
        """Wait until every entry of the ledger that was acknowledged before this call is durable. Raises WriteError."""
        link = self._peer(bookie).link_v3(ledger)
        await link.ask(link.wire.force(ledger, self.config.read_timeout_s))

    async def list_entries(self, bookie: str, ledger: int) -> AvailableEntries:
        """Return which entries of the ledger the bookie holds. Raises NoSuchLedger or ReadError.

        Some versions of Java bookies never answer; the call then ends with RequestTimeout.
        """
        link = self._peer(bookie).link_v3(ledger)
        answer: AvailableEntries = await link.ask(link.wire.list_entries(ledger, self.config.read_timeout_s))
        return answer

    async def bookie_info(self, bookie: str) -> BookieInfo:
        """Return the space of the bookie's disks, and its load if it tells that. Raises ReadError."""
        peer = self._peer(bookie)
        load = BOOKIE_LOAD in await peer.known()
        link = peer.link_v3(0)
        answer: BookieInfo = await link.ask(link.wire.bookie_info(self.config.bookie_info_timeout_s, load=load))
        return answer

    async def write_close(self, bookie: str, ledger: int, master_key: bytes) -> bool:
        """Announce that the ledger gets no more entries. If the bookie does not listen for it, return False."""
        if WRITE_CLOSE not in await self._peer(bookie).known():
            return False
        link = self._peer(bookie).link_v3(ledger)
        await link.ask(link.wire.write_close(ledger, master_key, self.config.read_timeout_s))
        return True

    def announce_end(self, ledger: int, master_key: bytes, bookies: Collection[str]) -> None:
        """Send `write_close` to these bookies, to all at once, without waiting. `close` gives it a short time."""
        if not self._closed:
            self.announcements.start(ledger, master_key, bookies)

    # --- connections --------------------------------------------------------------------------------------------------

    def excluded(self) -> frozenset[str]:
        """Return the bookies in quarantine, which are not used for writing as long as there are enough others."""
        return self.health.excluded()

    def pending(self, bookie: str) -> int:
        """Return the number of requests to this bookie that are not answered yet."""
        peer = self._peers.get(bookie)
        return peer.pending if peer else 0

    def _peer(self, bookie: str) -> Peer:
        if self._closed:
            raise ClientClosed(f"{bookie}: the client was closed")
        peer = self._peers.get(bookie)
        if peer is None:
            peer = self._peers[bookie] = Peer(bookie, self.config, self._connector, self._resolve, self.health)
        return peer


def connector_of(config: ClientConfig) -> Connector:
    """Return how connections are made according to the configuration. Raises ConfigurationError."""
    return Connector(config.connect_timeout_s, tls_of(config), auth_of(config))
