"""BookKeeper for threads: the client of `bookie.client.aio` on an event loop of its own. Any thread."""

from collections.abc import Coroutine, Iterator, Mapping
from concurrent.futures import Future
from types import TracebackType
from typing import Any, Self

from bookie.client import aio
from bookie.client.blocking.bookie_calls import BookieCalls
from bookie.client.blocking.bookie_infos import BookieInfos
from bookie.client.blocking.handles import AdvancedWriteHandle, ReadHandle, WriteHandle
from bookie.client.blocking.logs import Logs
from bookie.client.entries.digest import DigestType
from bookie.client.event_loop.thread import LoopThread
from bookie.client.features import Features
from bookie.errors import IllegalOperation
from bookie.metadata.bookies.service_info import BookieServiceInfo
from bookie.metadata.records.ledger_metadata import LedgerMetadata
from bookie.metrics.family import Family

__all__ = ["BookKeeper"]


class BookKeeper:
    """A cluster, by its metadata service. A context manager; or `start()` and `close()`.

    `config`: settings of `ClientConfig`, by Apache BookKeeper's keys or by our names. ConfigurationError.
    """

    def __init__(self, metadata_service_uri: str, **config: Any) -> None:
        self._aio = aio.BookKeeper(metadata_service_uri, **config)
        self._thread = LoopThread("bookkeeper", self._aio.end_calls, self._aio.at_exit)
        self._started = False

    def start(self) -> None:
        """Connect to the metadata store, learn which bookies there are. MetadataStoreError, ClusterNotInitialized."""
        if self._started:
            raise IllegalOperation("this BookKeeper was started before; make another one")
        self._started = True
        self._thread.start()
        try:
            self._thread.run(self._aio.start())
        except BaseException:
            self._thread.stop()
            raise

    def close(self) -> None:
        """What is outstanding fails with ClientClosed; ledgers that were written stay open. Twice is fine."""
        if self._thread.alive:
            try:
                self._thread.run(self._aio.close())
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
        """Requests to single bookies, below all ledgers. ClientClosed."""
        return BookieCalls(self._thread, self._aio.bookie_client)

    @property
    def bookie_info(self) -> BookieInfos:
        """Disk space of the bookies, for who subscribes; it is polled for weighted placement too. ClientClosed."""
        return BookieInfos(self._thread, self._aio.bookie_info)

    @property
    def features(self) -> Features:
        """Switches that are thrown while this client runs: see there. ClientClosed."""
        return self._aio.features

    @property
    def logs(self) -> Logs:
        """Named lists of ledgers, kept in the metadata store. ClientClosed."""
        return Logs(self._thread, self._aio.logs)

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
    ) -> WriteHandle:
        """A new ledger, to be written.

        Each entry goes to `write_quorum_size` of `ensemble_size` bookies, and is acknowledged when `ack_quorum_size`
        have it. `digest_type`: CRC32, CRC32C, HMAC (also called MAC) or DUMMY. With `deferred_sync` acknowledged
        entries are safe only after `force`. IncorrectParameter, NotEnoughBookies, MetadataStoreError.
        """
        opening = self._aio.create_ledger(
            ensemble_size=ensemble_size,
            write_quorum_size=write_quorum_size,
            ack_quorum_size=ack_quorum_size,
            digest_type=digest_type,
            password=password,
            custom_metadata=custom_metadata,
            deferred_sync=deferred_sync,
        )
        return WriteHandle(self._thread, self._thread.run(opening.handle()))

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
    ) -> AdvancedWriteHandle:
        """`create_ledger` whose writer chooses entry ids, and the ledger's id if one is given. LedgerExists."""
        opening = self._aio.create_ledger_advanced(
            ledger_id,
            ensemble_size=ensemble_size,
            write_quorum_size=write_quorum_size,
            ack_quorum_size=ack_quorum_size,
            digest_type=digest_type,
            password=password,
            custom_metadata=custom_metadata,
            deferred_sync=deferred_sync,
        )
        return AdvancedWriteHandle(self._thread, self._thread.run(opening.handle()))

    def open_ledger(
        self,
        ledger_id: int,
        *,
        password: bytes | None = b"",
        digest_type: str | DigestType = DigestType.CRC32,
        recovery: bool = True,
    ) -> ReadHandle:
        """A ledger to read.

        With `recovery` a ledger that is still open is closed first, and its writer can add no more; without, it is read
        while it is written. `password` None is the administrator's: nothing is compared. The digest type is taken from
        the metadata unless `enableDigestTypeAutodetection` is false.
        NoSuchLedgerMetadata, UnauthorizedAccess, DigestMismatch, LedgerRecoveryError, MetadataStoreError.
        """
        return self._thread.run(self._open(ledger_id, password, digest_type, recovery=recovery))

    def open_ledger_async(
        self,
        ledger_id: int,
        *,
        password: bytes | None = b"",
        digest_type: str | DigestType = DigestType.CRC32,
        recovery: bool = True,
    ) -> Future[ReadHandle]:
        """`open_ledger` without waiting."""
        return self._thread.submit(self._open(ledger_id, password, digest_type, recovery=recovery))

    def delete_ledger(self, ledger_id: int) -> None:
        """Delete it, if there is one. Bookies drop its entries when they next collect garbage."""
        self._thread.run(self._aio.delete_ledger(ledger_id))

    def list_ledgers(self) -> Iterator[int]:
        """All ledger ids, ascending. Ids that come or go meanwhile may or may not be among them. MetadataStoreError."""
        ranges = self._aio.ledger_ranges()
        while ids := self._thread.run(_following(anext(ranges, []))):
            yield from ids

    def ledger_metadata(self, ledger_id: int) -> LedgerMetadata:
        """What is stored of a ledger. NoSuchLedgerMetadata."""
        return self._thread.run(self._aio.ledger_metadata(ledger_id))

    def bookies(self, *, read_only: bool = False) -> frozenset[str]:
        """The bookies that are registered as writable, or as read-only."""
        return self._thread.run(self._aio.bookies(read_only=read_only))

    def known_bookies(self) -> frozenset[str]:
        """The bookies that have a cookie, whether they are registered now or not."""
        return self._thread.run(self._aio.known_bookies())

    def service_info(self, bookie: str) -> BookieServiceInfo | None:
        """What a bookie publishes; None if it is not registered. MetadataSerializationError."""
        return self._thread.run(self._aio.service_info(bookie))

    def metrics(self) -> list[Family]:
        """Weights and chances of bookies and what waits for them: docs/metrics.md."""
        return self._thread.run(self._metrics())

    async def _metrics(self) -> list[Family]:
        return self._aio.metrics()

    async def _open(
        self, ledger: int, password: bytes | None, digest_type: str | DigestType, *, recovery: bool
    ) -> ReadHandle:
        opening = self._aio.open_ledger(ledger, password=password, digest_type=digest_type, recovery=recovery)
        return ReadHandle(self._thread, await opening)


async def _following(ids: Coroutine[Any, Any, list[int]]) -> list[int]:
    return await ids
