"""BookKeeper on asyncio: ledgers made, opened, deleted, listed. Event loop."""

import contextlib
import random
from collections.abc import AsyncIterator, Mapping
from types import TracebackType
from typing import Any, Self
from weakref import WeakSet

from bookie.client.aio.logs import Logs
from bookie.client.aio.metrics import client_families
from bookie.client.aio.reading import ReadHandle
from bookie.client.aio.scope import Opening, Scope
from bookie.client.aio.writing import AdvancedWriteHandle, WriteHandle
from bookie.client.bookies import BookieClient, MetadataStore
from bookie.client.config import ClientConfig
from bookie.client.entries.digest import Digest, DigestType
from bookie.client.features import Features
from bookie.client.known_cluster import KnownCluster
from bookie.client.ledgers.context import ClientContext
from bookie.client.ledgers.creating import NewLedger, create_ledger
from bookie.client.ledgers.opening import Credentials, digest_type_of, open_reader
from bookie.client.ledgers.reader import LedgerReader
from bookie.client.ledgers.writer import LedgerWriter
from bookie.client.placement.bookie_info import BookieInfoReader
from bookie.errors import ClientClosed, IllegalOperation, IncorrectParameter, NoSuchLedgerMetadata
from bookie.metadata import open_driver
from bookie.metadata.bookies.service_info import BookieServiceInfo, parse_service_info
from bookie.metadata.driver import MetadataDriver
from bookie.metadata.records.ledger_metadata import DigestType as StoredDigestType
from bookie.metadata.records.ledger_metadata import LedgerMetadata
from bookie.metrics.family import Family

__all__ = ["BookKeeper"]


class BookKeeper:
    """A cluster, by its metadata service. An async context manager; or `await start()` and `await close()`.

    `config`: settings of `ClientConfig`, by Apache BookKeeper's keys or by our names. ConfigurationError.
    """

    def __init__(self, metadata_service_uri: str | MetadataDriver, **config: Any) -> None:
        """A driver instead of a URI is started and stopped as one of its own would be."""
        self.config = ClientConfig.of(config)
        if isinstance(metadata_service_uri, str):
            timeout_ms = int(self.config.session_timeout_s * 1000)
            self._driver = open_driver(metadata_service_uri, session_timeout_ms=timeout_ms)
        else:
            self._driver = metadata_service_uri
        self._scope = Scope()
        self._writers: WeakSet[LedgerWriter] = WeakSet()
        self._ends = contextlib.AsyncExitStack()
        self._cluster: KnownCluster | None = None
        self._started = False

    async def start(self) -> None:
        """Connect to the metadata store, learn which bookies there are. MetadataStoreError, ClusterNotInitialized."""
        if self._cluster is not None or self._scope.closed:
            raise IllegalOperation("this BookKeeper was started before; make another one")
        try:
            store = await MetadataStore.open(self._driver)
            self._ends.push_async_callback(store.close)
            self._cluster = await KnownCluster.over(store, self.config, random.Random())
            self._ends.push_async_callback(self._cluster.close)
            await self._cluster.start()
        except BaseException:
            await self.close()
            raise
        self._started = True

    async def close(self) -> None:
        """What is outstanding fails with ClientClosed; ledgers that were written stay open. Twice is fine."""
        await self.end_calls()
        await self._ends.aclose()

    async def end_calls(self) -> None:
        """All of `close` but the end of the session with the metadata store."""
        self._scope.closed = True
        # Bookies first: they tell pending adds and reads why they end.
        if self._cluster is not None:
            await self._cluster.bookies.close()
        for writer in list(self._writers):
            writer.stop(ClientClosed("the client was closed"))
        await self._scope.close()

    def at_exit(self) -> None:
        """The interpreter ends, and the event loop has ended: end the session with the metadata store."""
        self._driver.stop()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    @property
    def context(self) -> ClientContext:
        """What ledgers stand on, for what is built beside this class. ClientClosed."""
        if self._scope.closed:
            raise ClientClosed("the client is closed; open another BookKeeper")
        if self._cluster is None or not self._started:
            raise IllegalOperation("this BookKeeper is not started: use it in a with statement, or call start()")
        return self._cluster.context

    @property
    def bookie_client(self) -> BookieClient:
        """Requests to single bookies, below all ledgers. ClientClosed."""
        return self._known.bookies

    @property
    def bookie_info(self) -> BookieInfoReader:
        """Disk space of the bookies, for who subscribes; it is polled for weighted placement too. ClientClosed."""
        return self._known.info

    def metrics(self) -> list[Family]:
        """Weights and chances of bookies and what waits for them: docs/metrics.md. ClientClosed."""
        return client_families(self._known)

    @property
    def features(self) -> Features:
        """Switches that are thrown while this client runs: see there. ClientClosed."""
        return self.context.features

    @property
    def logs(self) -> Logs:
        """Named lists of ledgers, kept in the metadata store. ClientClosed."""
        return Logs(self._scope, self._known.store)

    @property
    def _known(self) -> KnownCluster:
        if self._cluster is None or self._scope.closed:
            raise ClientClosed("the client is closed, or was not started")
        return self._cluster

    # --- ledgers ------------------------------------------------------------------------------------------------------

    def create_ledger(
        self,
        *,
        ensemble_size: int = 3,
        write_quorum_size: int = 2,
        ack_quorum_size: int = 2,
        digest_type: str | DigestType = DigestType.CRC32,
        password: bytes = b"",
        custom_metadata: Mapping[str, bytes] | None = None,
        deferred_sync: bool = False,
    ) -> Opening[WriteHandle]:
        """A new ledger, to be written: `async with` it, or `await` it.

        Each entry goes to `write_quorum_size` of `ensemble_size` bookies, and is acknowledged when `ack_quorum_size`
        have it. `digest_type`: CRC32, CRC32C, HMAC (also called MAC) or DUMMY. With `deferred_sync` acknowledged
        entries are safe only after `force`. IncorrectParameter, NotEnoughBookies, MetadataStoreError.
        """
        sizes = ensemble_size, write_quorum_size, ack_quorum_size
        wanted = _wanted(sizes, digest_type, password, custom_metadata)
        return Opening(self._create(WriteHandle, wanted, deferred_sync=deferred_sync))

    def create_ledger_advanced(
        self,
        ledger_id: int | None = None,
        *,
        ensemble_size: int = 3,
        write_quorum_size: int = 2,
        ack_quorum_size: int = 2,
        digest_type: str | DigestType = DigestType.CRC32,
        password: bytes = b"",
        custom_metadata: Mapping[str, bytes] | None = None,
        deferred_sync: bool = False,
    ) -> Opening[AdvancedWriteHandle]:
        """`create_ledger` whose writer chooses entry ids, and the ledger's id if one is given. LedgerExists."""
        sizes = ensemble_size, write_quorum_size, ack_quorum_size
        wanted = _wanted(sizes, digest_type, password, custom_metadata, ledger_id)
        return Opening(self._create(AdvancedWriteHandle, wanted, deferred_sync=deferred_sync))

    def open_ledger(
        self,
        ledger_id: int,
        *,
        password: bytes | None = b"",
        digest_type: str | DigestType = DigestType.CRC32,
        recovery: bool = True,
    ) -> Opening[ReadHandle]:
        """A ledger to read: `async with` it, or `await` it.

        With `recovery` a ledger that is still open is closed first, and its writer can add no more; without, it is read
        while it is written. `password` None is the administrator's: nothing is compared. The digest type is taken from
        the metadata unless `enableDigestTypeAutodetection` is false.
        NoSuchLedgerMetadata, UnauthorizedAccess, DigestMismatch, LedgerRecoveryError, MetadataStoreError.
        """
        return Opening(self._open(ledger_id, Credentials(password, digest_type_of(digest_type)), recovery=recovery))

    async def delete_ledger(self, ledger_id: int) -> None:
        """Delete it, if there is one. Bookies drop its entries when they next collect garbage."""
        if ledger_id < 0:
            raise IncorrectParameter(f"ledger id {ledger_id} must be at least 0")
        with contextlib.suppress(NoSuchLedgerMetadata):
            await self._scope.run(self.context.metadata.delete(ledger_id))

    async def list_ledgers(self) -> AsyncIterator[int]:
        """All ledger ids, ascending. Ids that come or go meanwhile may or may not be among them. MetadataStoreError."""
        async for ids in self.ledger_ranges():
            for ledger in ids:
                yield ledger

    async def ledger_ranges(self) -> AsyncIterator[list[int]]:
        """`list_ledgers` in pieces, as the metadata store keeps them."""
        ranges = self.context.metadata.ledgers()
        while ids := await self._scope.run(_following(ranges)):
            yield ids

    async def ledger_metadata(self, ledger_id: int) -> LedgerMetadata:
        """What is stored of a ledger. NoSuchLedgerMetadata."""
        if ledger_id < 0:
            raise IncorrectParameter(f"ledger id {ledger_id} must be at least 0")
        return (await self._scope.run(self.context.metadata.read(ledger_id))).value

    async def bookies(self, *, read_only: bool = False) -> frozenset[str]:
        """The bookies that are registered as writable, or as read-only."""
        return await self._scope.run(self.context.metadata.bookies(read_only=read_only))

    async def known_bookies(self) -> frozenset[str]:
        """The bookies that have a cookie, whether they are registered now or not."""
        return await self._scope.run(self._known.store.known_bookies())

    async def service_info(self, bookie: str) -> BookieServiceInfo | None:
        """What a bookie publishes; None if it is not registered. MetadataSerializationError."""
        data = await self._scope.run(self._known.store.info(bookie))
        return None if data is None else parse_service_info(bookie, data)

    # --- handles ------------------------------------------------------------------------------------------------------

    async def _create(self, kind: type[Any], wanted: NewLedger, *, deferred_sync: bool) -> Any:
        context = self.context
        if deferred_sync and self.config.use_v2_wire_protocol:
            raise IllegalOperation("deferred sync needs V3: set useV2WireProtocol=false")
        known = await self._scope.run(create_ledger(context, wanted))
        digest = Digest.of(DigestType(wanted.digest_type), wanted.password)
        writer = LedgerWriter(known, digest, context, advanced=kind is AdvancedWriteHandle, deferred_sync=deferred_sync)
        writer.start()
        self._writers.add(writer)
        return kind(self._scope, LedgerReader(known.ledger, known.stored, digest, context), writer)

    async def _open(self, ledger: int, wanted: Credentials, *, recovery: bool) -> ReadHandle:
        return await self._scope.run(self._opened(ledger, wanted, recovery=recovery))

    async def _opened(self, ledger: int, wanted: Credentials, *, recovery: bool) -> ReadHandle:
        return ReadHandle(self._scope, await open_reader(self.context, ledger, wanted, recovery=recovery))


def _wanted(
    sizes: tuple[int, int, int],
    digest_type: str | DigestType,
    password: bytes,
    custom: Mapping[str, bytes] | None,
    ledger: int | None = None,
) -> NewLedger:
    """`sizes`: ensemble, write quorum, ack quorum. IncorrectParameter."""
    return NewLedger(
        ensemble_size=sizes[0],
        write_quorum=sizes[1],
        ack_quorum=sizes[2],
        digest_type=StoredDigestType(digest_type_of(digest_type)),
        password=password,
        custom=custom or {},
        ledger=ledger,
    )


async def _following(ranges: AsyncIterator[list[int]]) -> list[int]:
    return await anext(ranges, [])
