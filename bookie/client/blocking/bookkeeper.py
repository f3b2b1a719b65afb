"""BookKeeper for threads: the client of `bookie.client.aio` on an event loop on its own thread. Any thread."""

import math
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from types import TracebackType
from typing import Any, Self

from bookie.client import aio
from bookie.client.blocking.bookie_calls import BookieCalls
from bookie.client.blocking.bookie_infos import BookieInfos
from bookie.client.blocking.handles import ReadHandle
from bookie.client.blocking.logs import Logs
from bookie.client.blocking.writers import AdvancedWriteHandle, WriteHandle
from bookie.client.entries.digest import DigestType
from bookie.client.event_loop.thread import LoopThread
from bookie.client.features import Features
from bookie.errors import IllegalOperation
from bookie.metadata.bookies.service_info import BookieServiceInfo
from bookie.metadata.records.ledger_metadata import LedgerMetadata
from bookie.metrics.family import Family

__all__ = ["BookKeeper"]


class BookKeeper:
    """A client of a cluster, for any number of threads. It is a context manager; otherwise call `start()` and
    `close()`.

    Before it is started, calls raise IllegalOperation, and ClientClosed once it is closed. Calls that wait take a
    `timeout` in seconds, after which they raise RequestTimeout, which is a TimeoutError. Except for `start`, the
    default is the setting `callTimeoutSec`; if that is 0, they wait without limit. `math.inf` means no limit, too.

    Args:
        metadata_service_uri: The URI of the metadata store, such as `zk+hierarchical://host:2181/ledgers`.
        **config: Settings of `ClientConfig`, by Apache BookKeeper's keys or by the names of the fields.

    Raises:
        ConfigurationError: A setting is wrong, or the URI is.
    """

    def __init__(self, metadata_service_uri: str, **config: Any) -> None:
        self._aio = aio.BookKeeper(metadata_service_uri, **config)
        self._thread = LoopThread("bookkeeper", self._aio.end_calls, self._aio.at_exit, self._aio.config.call_timeout_s)
        self._started = False
        self._closing = threading.RLock()

    def start(self, *, timeout: float = math.inf) -> None:
        """Connect to the metadata store and learn which bookies are registered. A client can be started only once.

        Args:
            timeout: Seconds to wait at most. The metadata store has `zkTimeout` to answer in any case.

        Raises:
            MetadataStoreError: The metadata store refused, or did not answer in time.
            ClusterNotInitialized: The metadata store holds no cluster under the given root.
            IllegalOperation: The client was started before.
        """
        if self._started:
            raise IllegalOperation("this BookKeeper was started before; make another one")
        self._started = True
        self._thread.start()
        try:
            self._thread.run(self._aio.start(), timeout)
        except BaseException:
            self._thread.stop()
            raise

    def close(self) -> None:
        """Fail all outstanding calls with ClientClosed, and end the session with the metadata store.

        Ledgers that were being written are not closed; a reader can recover them. Those that were being created are
        deleted again, if the metadata store answers within five seconds. Further calls do nothing; those of other
        threads wait for the end of the first.
        """
        if not self._thread.alive:  # nor in a forked child, where another thread may have held the lock
            return
        with self._closing:
            if self._thread.alive:
                try:
                    self._thread.run(self._aio.close(), math.inf)
                finally:
                    self._thread.stop()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def bookie_client(self) -> BookieCalls:
        """Requests to single bookies, below all ledgers.

        Raises:
            ClientClosed: The client is closed.
            IllegalOperation: The client is not started.
        """
        return BookieCalls(self._thread, self._aio.bookie_client)

    @property
    def bookie_info(self) -> BookieInfos:
        """The disk space of the bookies. They are polled while somebody subscribes, or while placement is weighted.

        Raises:
            ClientClosed: The client is closed.
            IllegalOperation: The client is not started.
        """
        return BookieInfos(self._thread, self._aio.bookie_info)

    @property
    def features(self) -> Features:
        """The switches that can be changed while this client runs; `bookie.client.features` lists them.

        Raises:
            ClientClosed: The client is closed.
            IllegalOperation: The client is not started.
        """
        return self._aio.features

    @property
    def logs(self) -> Logs:
        """Named lists of ledgers, which are kept in the metadata store.

        Raises:
            ClientClosed: The client is closed.
            IllegalOperation: The client is not started.
        """
        return Logs(self._thread, self._aio.logs)

    def __repr__(self) -> str:
        return repr(self._aio)

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
        timeout: float | None = None,
    ) -> WriteHandle:
        """Create a ledger for writing.

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
            timeout: Seconds to wait at most; None means `callTimeoutSec`.

        Returns:
            The write handle.

        Raises:
            IncorrectParameter: The sizes violate ensemble >= write quorum >= ack quorum >= 1, or the digest type is
                unknown.
            NotEnoughBookies: There are too few writable bookies, or too few that the placement policy accepts.
            MetadataStoreError: The metadata store refused, or did not answer in time.
            IllegalOperation: Deferred sync was requested with V2.
            ClientClosed: The client is closed.
        """
        sizes = ensemble_size, write_quorum_size, ack_quorum_size
        wanted = _wanted(sizes, digest_type, password, custom_metadata, deferred_sync=deferred_sync)
        return self._thread.run(self._create(**wanted), timeout, unclaimed=self._delete_unowned)

    def create_ledger_async(
        self,
        *,
        ensemble_size: int = 3,
        write_quorum_size: int | None = None,
        ack_quorum_size: int | None = None,
        digest_type: str | DigestType = DigestType.CRC32,
        password: bytes = b"",
        custom_metadata: Mapping[str, bytes] | None = None,
        deferred_sync: bool = False,
    ) -> Future[WriteHandle]:
        """Create a ledger like `create_ledger`, without waiting.

        Args:
            ensemble_size: See `create_ledger`, as for all further arguments.
            write_quorum_size: See `create_ledger`.
            ack_quorum_size: See `create_ledger`.
            digest_type: See `create_ledger`.
            password: See `create_ledger`.
            custom_metadata: See `create_ledger`.
            deferred_sync: See `create_ledger`.

        Returns:
            A future of the write handle, or of an error of `create_ledger`. If it is cancelled, the ledger is deleted
                again.

        Raises:
            ClientClosed: The client is closed.
        """
        sizes = ensemble_size, write_quorum_size, ack_quorum_size
        wanted = _wanted(sizes, digest_type, password, custom_metadata, deferred_sync=deferred_sync)
        return self._thread.submit(self._create(**wanted), unclaimed=self._delete_unowned)

    def create_ledger_advanced(  # noqa: PLR0913 - all but the first have names and defaults
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
        timeout: float | None = None,
    ) -> AdvancedWriteHandle:
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
            timeout: See `create_ledger`.

        Returns:
            The write handle.

        Raises:
            LedgerExists: A ledger with the given id already exists.
            BookKeeperError: Any error of `create_ledger`.
        """
        sizes = ensemble_size, write_quorum_size, ack_quorum_size
        wanted = _wanted(sizes, digest_type, password, custom_metadata, deferred_sync=deferred_sync)
        return self._thread.run(self._create_advanced(ledger_id, **wanted), timeout, unclaimed=self._delete_unowned)

    def create_ledger_advanced_async(
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
    ) -> Future[AdvancedWriteHandle]:
        """Create a ledger like `create_ledger_advanced`, without waiting.

        Args:
            ledger_id: See `create_ledger_advanced`.
            ensemble_size: See `create_ledger`, as for all further arguments.
            write_quorum_size: See `create_ledger`.
            ack_quorum_size: See `create_ledger`.
            digest_type: See `create_ledger`.
            password: See `create_ledger`.
            custom_metadata: See `create_ledger`.
            deferred_sync: See `create_ledger`.

        Returns:
            A future of the write handle, or of an error of `create_ledger_advanced`.

        Raises:
            ClientClosed: The client is closed.
        """
        sizes = ensemble_size, write_quorum_size, ack_quorum_size
        wanted = _wanted(sizes, digest_type, password, custom_metadata, deferred_sync=deferred_sync)
        return self._thread.submit(self._create_advanced(ledger_id, **wanted), unclaimed=self._delete_unowned)

    def open_ledger(
        self,
        ledger_id: int,
        *,
        password: bytes | None = b"",
        digest_type: str | DigestType = DigestType.CRC32,
        recovery: bool = True,
        timeout: float | None = None,
    ) -> ReadHandle:
        """Open a ledger for reading.

        Args:
            ledger_id: The id of the ledger.
            password: The password with which the ledger was created. None is for administrators: no password is
                compared, and the metadata are trusted.
            digest_type: The digest type of the ledger. It matters only for ledgers whose metadata do not name one, or
                with `enableDigestTypeAutodetection=false`.
            recovery: Whether a ledger that is still open is recovered: it is fenced and closed, and its writer can
                add no more entries. Without recovery the ledger can be read while it is written.
            timeout: Seconds to wait at most; None means `callTimeoutSec`.

        Returns:
            The read handle.

        Raises:
            NoSuchLedgerMetadata: The metadata store has no such ledger.
            UnauthorizedAccess: The password is wrong.
            DigestMismatch: The digest type differs from that of the ledger.
            LedgerRecoveryError: Too few bookies answered to recover the ledger.
            ReadError: Too few bookies answered to learn the LAC of a ledger that is not closed.
            MetadataStoreError: The metadata store refused, or did not answer in time.
            IncorrectParameter: The ledger id is negative, or the digest type is unknown.
            ClientClosed: The client is closed.
        """
        opening = self._open(ledger_id, password, digest_type, recovery=recovery)
        return self._thread.run(opening, timeout, unclaimed=self._close_unowned)

    def open_ledger_async(
        self,
        ledger_id: int,
        *,
        password: bytes | None = b"",
        digest_type: str | DigestType = DigestType.CRC32,
        recovery: bool = True,
    ) -> Future[ReadHandle]:
        """Open a ledger like `open_ledger`, without waiting.

        Args:
            ledger_id: The id of the ledger.
            password: See `open_ledger`.
            digest_type: See `open_ledger`.
            recovery: See `open_ledger`.

        Returns:
            A future of the read handle, or of an error of `open_ledger`.

        Raises:
            ClientClosed: The client is closed.
        """
        opening = self._open(ledger_id, password, digest_type, recovery=recovery)
        return self._thread.submit(opening, unclaimed=self._close_unowned)

    def delete_ledger(self, ledger_id: int, *, timeout: float | None = None) -> None:
        """Delete a ledger; do nothing if it does not exist. Bookies drop its entries at their next garbage
        collection.

        Args:
            ledger_id: The id of the ledger.
            timeout: Seconds to wait at most; None means `callTimeoutSec`.

        Raises:
            IncorrectParameter: The ledger id is negative.
            MetadataStoreError: The metadata store refused, or did not answer in time.
            ClientClosed: The client is closed.
        """
        self._thread.run(self._aio.delete_ledger(ledger_id), timeout)

    def delete_ledger_async(self, ledger_id: int) -> Future[None]:
        """Delete a ledger like `delete_ledger`, and return a future of its end."""
        return self._thread.submit(self._aio.delete_ledger(ledger_id))

    def list_ledgers(self) -> Iterator[int]:
        """Yield the ids of all ledgers in ascending order, in pages, each of which may take `callTimeoutSec`.

        Ledgers that are created or deleted while the list is read may or may not be in it.

        Raises:
            MetadataStoreError: The metadata store refused, or did not answer in time.
            ClientClosed: The client is closed.
        """
        listed = self._aio.list_ledgers()
        while ids := self._thread.run(listed.page()):
            yield from ids

    def ledger_metadata(self, ledger_id: int, *, timeout: float | None = None) -> LedgerMetadata:
        """Return the metadata of a ledger as they are stored now.

        Args:
            ledger_id: The id of the ledger.
            timeout: Seconds to wait at most; None means `callTimeoutSec`.

        Raises:
            NoSuchLedgerMetadata: The metadata store has no such ledger.
            IncorrectParameter: The ledger id is negative.
            MetadataStoreError: The metadata store refused, or did not answer in time.
            ClientClosed: The client is closed.
        """
        return self._thread.run(self._aio.ledger_metadata(ledger_id), timeout)

    def bookies(self, *, read_only: bool = False, timeout: float | None = None) -> frozenset[str]:
        """Return the ids of the bookies that are registered now.

        Args:
            read_only: Whether to return the read-only bookies instead of the writable ones.
            timeout: Seconds to wait at most; None means `callTimeoutSec`.

        Raises:
            MetadataStoreError: The metadata store refused, or did not answer in time.
            ClientClosed: The client is closed.
        """
        return self._thread.run(self._aio.bookies(read_only=read_only), timeout)

    def known_bookies(self, *, timeout: float | None = None) -> frozenset[str]:
        """Return the ids of all bookies that have a cookie in the metadata store, whether they are registered or not.

        Args:
            timeout: Seconds to wait at most; None means `callTimeoutSec`.

        Raises:
            MetadataStoreError: The metadata store refused, or did not answer in time.
            ClientClosed: The client is closed.
        """
        return self._thread.run(self._aio.known_bookies(), timeout)

    def service_info(self, bookie: str, *, timeout: float | None = None) -> BookieServiceInfo | None:
        """Return what a bookie publishes about itself, such as its endpoints.

        Args:
            bookie: The id of the bookie.
            timeout: Seconds to wait at most; None means `callTimeoutSec`.

        Returns:
            The service info, or None if the bookie is not registered.

        Raises:
            MetadataSerializationError: The published value cannot be parsed.
            MetadataStoreError: The metadata store refused, or did not answer in time.
            ClientClosed: The client is closed.
        """
        return self._thread.run(self._aio.service_info(bookie), timeout)

    def metrics(self) -> list[Family]:
        """Return the metrics of this client as of now; docs/metrics.md describes them.

        Raises:
            ClientClosed: The client is closed.
            IllegalOperation: The client is not started.
        """
        return self._thread.run(self._metrics())

    async def _create(self, **wanted: Any) -> WriteHandle:
        return WriteHandle(self._thread, await self._aio.create_ledger(**wanted), self._aio.bookie_client)

    async def _create_advanced(self, ledger: int | None, **wanted: Any) -> AdvancedWriteHandle:
        handle = await self._aio.create_ledger_advanced(ledger, **wanted)
        return AdvancedWriteHandle(self._thread, handle, self._aio.bookie_client)

    def _delete_unowned(self, handle: WriteHandle | AdvancedWriteHandle) -> None:
        writer = handle._handle.writer
        writer.stop()
        self._aio.give_back(writer.known)

    def _close_unowned(self, handle: ReadHandle) -> None:
        handle._handle._release()

    async def _metrics(self) -> list[Family]:
        return self._aio.metrics()

    async def _open(
        self, ledger: int, password: bytes | None, digest_type: str | DigestType, *, recovery: bool
    ) -> ReadHandle:
        opening = self._aio.open_ledger(ledger, password=password, digest_type=digest_type, recovery=recovery)
        return ReadHandle(self._thread, await opening, self._aio.bookie_client)


def _wanted(
    sizes: tuple[int, int | None, int | None],
    digest_type: str | DigestType,
    password: bytes,
    custom_metadata: Mapping[str, bytes] | None,
    *,
    deferred_sync: bool,
) -> dict[str, Any]:
    """Collect the arguments of a create; `sizes` are ensemble size, write quorum and ack quorum."""
    return {
        "ensemble_size": sizes[0],
        "write_quorum_size": sizes[1],
        "ack_quorum_size": sizes[2],
        "digest_type": digest_type,
        "password": password,
        "custom_metadata": custom_metadata,
        "deferred_sync": deferred_sync,
    }
