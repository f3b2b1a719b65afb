"""BookKeeper for asyncio: create, open, delete and list ledgers. All methods run on the event loop."""

import asyncio
import contextlib
import random
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self
from weakref import WeakSet

from bookie.client.aio.listing import Listing
from bookie.client.aio.logs import Logs
from bookie.client.aio.metrics import client_families
from bookie.client.aio.reading import ReadHandle
from bookie.client.aio.scope import Opening, Scope
from bookie.client.aio.writing import AdvancedWriteHandle, WriteHandle
from bookie.client.arguments import binary, custom_metadata, flag, integer
from bookie.client.bookies import BookieClient, MetadataStore
from bookie.client.config import ClientConfig
from bookie.client.entries.digest import Digest, DigestType
from bookie.client.event_loop.thread import NOT_STARTED
from bookie.client.features import Features
from bookie.client.known_cluster import KnownCluster
from bookie.client.ledgers.context import ClientContext
from bookie.client.ledgers.creating import NewLedger, create_owned, delete_unowned
from bookie.client.ledgers.metadata_loop import Known
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
    """A client of a cluster. It is an async context manager; otherwise call `await start()` and `await close()`.

    Before it is started, calls raise IllegalOperation, and ClientClosed once it is closed.

    Args:
        metadata_service_uri: The URI of the metadata store, such as `zk+hierarchical://host:2181/ledgers`. A metadata
            driver may be given instead; it is started and stopped like one that was opened from a URI.
        **config: Settings of `ClientConfig`, by Apache BookKeeper's keys or by the names of the fields.

    Raises:
        ConfigurationError: A setting is wrong, or the URI is.
    """

    def __init__(self, metadata_service_uri: str | MetadataDriver, **config: Any) -> None:
        self.config = ClientConfig.of(config)
        self._uri = metadata_service_uri if isinstance(metadata_service_uri, str) else "a metadata driver"
        if isinstance(metadata_service_uri, str):
            timeout_ms = int(self.config.session_timeout_s * 1000)
            self._driver = open_driver(metadata_service_uri, session_timeout_ms=timeout_ms, create=False)
        else:
            self._driver = metadata_service_uri
        self._scope = Scope()
        self._writers: WeakSet[LedgerWriter] = WeakSet()
        self._ends = contextlib.AsyncExitStack()
        self._ending = asyncio.Lock()
        self._cluster: KnownCluster | None = None
        self._started = False

    async def start(self) -> None:
        """Connect to the metadata store and learn which bookies are registered. A client can be started only once.

        Raises:
            MetadataStoreError: The metadata store refused, or did not answer in time.
            ClusterNotInitialized: The metadata store holds no cluster under the given root.
            IllegalOperation: The client was started or closed before.
        """
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
        """Fail all outstanding calls with ClientClosed, and end the session with the metadata store.

        Ledgers that were being written are not closed; a reader can recover them. Those that were being created are
        deleted again, if the metadata store answers within five seconds. Further calls wait for the end of the first.
        """
        await self.end_calls()
        async with self._ending:
            await self._ends.aclose()

    async def end_calls(self) -> None:
        """Do all of `close` except ending the session with the metadata store."""
        self._scope.closed = True
        # The bookies are closed first, because they tell pending adds and reads why they fail.
        if self._cluster is not None:
            await self._cluster.bookies.close()
        for writer in list(self._writers):
            writer.stop(ClientClosed("the client was closed"))
        await self._scope.close()

    def at_exit(self) -> None:
        """End the session with the metadata store when the interpreter exits and the event loop has already ended."""
        self._driver.stop()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        state = "closed" if self._scope.closed else "started" if self._started else "not started"
        return f"<BookKeeper of {self._uri}, {state}>"

    @property
    def context(self) -> ClientContext:
        """What the ledger protocol needs, for code that is built on top of this class.

        Raises:
            ClientClosed: The client is closed.
            IllegalOperation: The client is not started.
        """
        return self._known.context

    @property
    def bookie_client(self) -> BookieClient:
        """Requests to single bookies, below all ledgers.

        Raises:
            ClientClosed: The client is closed.
            IllegalOperation: The client is not started.
        """
        return self._known.bookies

    @property
    def bookie_info(self) -> BookieInfoReader:
        """The disk space of the bookies. They are polled while somebody subscribes, or while placement is weighted.

        Raises:
            ClientClosed: The client is closed.
            IllegalOperation: The client is not started.
        """
        return self._known.info

    def metrics(self) -> list[Family]:
        """Return the metrics of this client as of now; docs/metrics.md describes them.

        Raises:
            ClientClosed: The client is closed.
            IllegalOperation: The client is not started.
        """
        return client_families(self._known)

    @property
    def features(self) -> Features:
        """The switches that can be changed while this client runs; `bookie.client.features` lists them.

        Raises:
            ClientClosed: The client is closed.
            IllegalOperation: The client is not started.
        """
        return self.context.features

    @property
    def logs(self) -> Logs:
        """Named lists of ledgers, which are kept in the metadata store.

        Raises:
            ClientClosed: The client is closed.
            IllegalOperation: The client is not started.
        """
        return Logs(self._scope, self._known.store)

    @property
    def _known(self) -> KnownCluster:
        if self._scope.closed:
            raise ClientClosed("the client is closed; open another BookKeeper")
        if self._cluster is None or not self._started:
            raise IllegalOperation(NOT_STARTED)
        return self._cluster

    # --- ledgers ------------------------------------------------------------------------------------------------------

    def create_ledger(
        self,
        *,
        ensemble_size: int = 3,
        write_quorum_size: int | None = None,
        ack_quorum_size: int | None = None,
        digest_type: str | DigestType = DigestType.CRC32,
        password: bytes = b"",
        custom_metadata: Mapping[str, bytes] | None = None,
        deferred_sync: bool = False,
    ) -> Opening[WriteHandle]:
        """Create a ledger for writing: use the result in `async with`, or `await` it.

        Args:
            ensemble_size: The number of bookies to which the ledger is written.
            write_quorum_size: The number of bookies that store each entry; None means all of the ensemble. If it is
                smaller, entries are striped and cannot be read in batches.
            ack_quorum_size: The number of bookies that must have stored an entry before it is acknowledged; None means
                the majority of the write quorum.
            digest_type: CRC32, CRC32C, HMAC (which may also be called MAC) or DUMMY.
            password: The ledger's password. A client needs it to read, to write and to recover the ledger.
            custom_metadata: Values that are kept with the ledger's metadata.
            deferred_sync: Acknowledge entries before bookies have synced them. They are durable only after `force`.
                Needs V3.

        Returns:
            The write handle, once it is awaited.

        Raises:
            IncorrectParameter: The sizes violate ensemble >= write quorum >= ack quorum >= 1, or the digest type is
                unknown.
            NotEnoughBookies: There are too few writable bookies, or too few that the placement policy accepts.
            MetadataStoreError: The metadata store refused, or did not answer in time.
            IllegalOperation: Deferred sync was requested with V2.
            ClientClosed: The client was closed.
        """
        sizes = ensemble_size, write_quorum_size, ack_quorum_size
        wanted = _wanted(sizes, digest_type, password, custom_metadata)
        return Opening(self._create(WriteHandle, wanted, deferred_sync=flag("deferred_sync", deferred_sync)))

    def create_ledger_advanced(
        self,
        ledger_id: int | None = None,
        *,
        ensemble_size: int = 3,
        write_quorum_size: int | None = None,
        ack_quorum_size: int | None = None,
        digest_type: str | DigestType = DigestType.CRC32,
        password: bytes = b"",
        custom_metadata: Mapping[str, bytes] | None = None,
        deferred_sync: bool = False,
    ) -> Opening[AdvancedWriteHandle]:
        """Create a ledger whose writer chooses the entry ids, and also the ledger's id if `ledger_id` is given.

        Args:
            ledger_id: The id of the ledger, 0 to 2**63 - 1; None lets the metadata store assign one.
            ensemble_size: See `create_ledger`, as for all further arguments.
            write_quorum_size: See `create_ledger`.
            ack_quorum_size: See `create_ledger`.
            digest_type: See `create_ledger`.
            password: See `create_ledger`.
            custom_metadata: See `create_ledger`.
            deferred_sync: See `create_ledger`.

        Returns:
            The write handle, once it is awaited.

        Raises:
            LedgerExists: A ledger with the given id already exists.
            BookKeeperError: Any error of `create_ledger`.
        """
        sizes = ensemble_size, write_quorum_size, ack_quorum_size
        wanted = _wanted(sizes, digest_type, password, custom_metadata, ledger_id)
        return Opening(self._create(AdvancedWriteHandle, wanted, deferred_sync=flag("deferred_sync", deferred_sync)))

    def open_ledger(
        self,
        ledger_id: int,
        *,
        password: bytes | None = b"",
        digest_type: str | DigestType = DigestType.CRC32,
        recovery: bool = True,
    ) -> Opening[ReadHandle]:
        """Open a ledger for reading: use the result in `async with`, or `await` it.

        Args:
            ledger_id: The id of the ledger.
            password: The password with which the ledger was created. None is for administrators: no password is
                compared, and the metadata are trusted.
            digest_type: The digest type of the ledger. It matters only for ledgers whose metadata do not name one, or
                with `enableDigestTypeAutodetection=false`.
            recovery: Whether a ledger that is still open is recovered: it is fenced and closed, and its writer can
                add no more entries. Without recovery the ledger can be read while it is written.

        Returns:
            The read handle, once it is awaited.

        Raises:
            NoSuchLedgerMetadata: The metadata store has no such ledger.
            UnauthorizedAccess: The password is wrong.
            DigestMismatch: The digest type differs from that of the ledger.
            LedgerRecoveryError: Too few bookies answered to recover the ledger.
            ReadError: Too few bookies answered to learn the LAC of a ledger that is not closed.
            MetadataStoreError: The metadata store refused, or did not answer in time.
            IncorrectParameter: The ledger id is negative, or the digest type is unknown.
            ClientClosed: The client was closed.
        """
        wanted = Credentials(None if password is None else binary("password", password), digest_type_of(digest_type))
        return Opening(self._open(integer("ledger_id", ledger_id), wanted, recovery=flag("recovery", recovery)))

    async def delete_ledger(self, ledger_id: int) -> None:
        """Delete a ledger; do nothing if it does not exist. Bookies drop its entries at their next garbage
        collection.

        Args:
            ledger_id: The id of the ledger.

        Raises:
            IncorrectParameter: The ledger id is negative.
            MetadataStoreError: The metadata store refused, or did not answer in time.
            ClientClosed: The client is closed.
        """
        if integer("ledger_id", ledger_id) < 0:
            raise IncorrectParameter(f"ledger id {ledger_id} must be at least 0")
        with contextlib.suppress(NoSuchLedgerMetadata):
            await self._scope.run(self.context.metadata.delete(ledger_id))

    def list_ledgers(self) -> Listing[int]:
        """Return an iterator over the ids of all ledgers in ascending order.

        Ledgers that are created or deleted while the list is read may or may not be in it.

        Raises:
            MetadataStoreError: The metadata store refused, or did not answer in time.
            ClientClosed: The client is closed.
        """
        return Listing(self._scope, self.context.metadata.ledgers())

    async def ledger_metadata(self, ledger_id: int) -> LedgerMetadata:
        """Return the metadata of a ledger as they are stored now.

        Args:
            ledger_id: The id of the ledger.

        Raises:
            NoSuchLedgerMetadata: The metadata store has no such ledger.
            IncorrectParameter: The ledger id is negative.
            MetadataStoreError: The metadata store refused, or did not answer in time.
            ClientClosed: The client is closed.
        """
        if integer("ledger_id", ledger_id) < 0:
            raise IncorrectParameter(f"ledger id {ledger_id} must be at least 0")
        return (await self._scope.run(self.context.metadata.read(ledger_id))).value

    async def bookies(self, *, read_only: bool = False) -> frozenset[str]:
        """Return the ids of the bookies that are registered now.

        Args:
            read_only: Whether to return the read-only bookies instead of the writable ones.

        Raises:
            MetadataStoreError: The metadata store refused, or did not answer in time.
            ClientClosed: The client is closed.
        """
        return await self._scope.run(self.context.metadata.bookies(read_only=read_only))

    async def known_bookies(self) -> frozenset[str]:
        """Return the ids of all bookies that have a cookie in the metadata store, whether they are registered or not.

        Raises:
            MetadataStoreError: The metadata store refused, or did not answer in time.
            ClientClosed: The client is closed.
        """
        return await self._scope.run(self._known.store.known_bookies())

    async def service_info(self, bookie: str) -> BookieServiceInfo | None:
        """Return what a bookie publishes about itself, such as its endpoints.

        Args:
            bookie: The id of the bookie.

        Returns:
            The service info, or None if the bookie is not registered.

        Raises:
            MetadataSerializationError: The published value cannot be parsed.
            MetadataStoreError: The metadata store refused, or did not answer in time.
            ClientClosed: The client is closed.
        """
        data = await self._scope.run(self._known.store.info(bookie))
        return None if data is None else parse_service_info(bookie, data)

    # --- handles ------------------------------------------------------------------------------------------------------

    def give_back(self, known: Known) -> None:
        """Delete a ledger that was just created and whose handle nobody has taken; `close` waits for that.

        Args:
            known: The ledger, whose writer was stopped.
        """
        assert self._cluster is not None
        self._scope.tidy(delete_unowned(self._cluster.context, known))

    async def _create(self, kind: type[Any], wanted: NewLedger, *, deferred_sync: bool) -> Any:
        context = self.context
        if deferred_sync and self.config.use_v2_wire_protocol:
            raise IllegalOperation("deferred sync needs V3: set useV2WireProtocol=false")
        known = await self._scope.run(create_owned(context, wanted, self._scope.tidy))
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
    sizes: tuple[int, int | None, int | None],
    digest_type: str | DigestType,
    password: bytes,
    custom: Mapping[str, bytes] | None,
    ledger: int | None = None,
) -> NewLedger:
    """Collect the arguments of a create; `sizes` are ensemble size, write quorum and ack quorum. Raises
    IncorrectParameter.
    """
    ensemble_size = integer("ensemble_size", sizes[0])
    write_quorum = ensemble_size if sizes[1] is None else integer("write_quorum_size", sizes[1])
    ack_quorum = write_quorum // 2 + 1 if sizes[2] is None else integer("ack_quorum_size", sizes[2])
    return NewLedger(
        ensemble_size=ensemble_size,
        write_quorum=write_quorum,
        ack_quorum=ack_quorum,
        digest_type=StoredDigestType(digest_type_of(digest_type)),
        password=binary("password", password),
        custom=custom_metadata({} if custom is None else custom),
        ledger=None if ledger is None else integer("ledger_id", ledger),
    )
