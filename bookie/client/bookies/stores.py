"""The metadata store without blocking: `contracts.Metadata` over a driver whose calls block.

Calls run in a few threads of their own; what a watch tells arrives on the event loop. The driver is started and stopped
with this object.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, Self, TypeVar

from bookie.errors import ClientClosed
from bookie.metadata.driver import MetadataDriver, Subscription, Versioned
from bookie.metadata.ledger_metadata import LedgerMetadata

__all__ = ["MetadataStore"]

P = ParamSpec("P")
T = TypeVar("T")
THREADS = 4


class MetadataStore:
    """Made by `open`, ended by `close`. `driver` is for what the contract does not have; its calls block."""

    def __init__(self, driver: MetadataDriver, *, threads: int = THREADS) -> None:
        self.driver = driver
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="metadata")
        self._closed = False

    @classmethod
    async def open(cls, driver: MetadataDriver, *, threads: int = THREADS) -> Self:
        """Connect. MetadataStoreError, ClusterNotInitialized."""
        store = cls(driver, threads=threads)
        try:
            await store.run(driver.start)
        except BaseException:
            await store.close()
            raise
        return store

    async def run(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """A blocking call of the driver's, in one of our threads. ClientClosed."""
        if self._closed:
            raise ClientClosed("the metadata store was closed")
        return await asyncio.get_running_loop().run_in_executor(self._pool, lambda: call(*args, **kwargs))

    async def close(self) -> None:
        """End the session when the calls under way are done. Idempotent."""
        if self._closed:
            return
        self._closed = True
        loop = asyncio.get_running_loop()
        try:
            stopped = loop.run_in_executor(self._pool, self.driver.stop)
        except RuntimeError:  # the interpreter ends, and has joined the threads: whoever closes in `atexit` comes here
            self.driver.stop()
            return
        await stopped
        await loop.run_in_executor(None, self._pool.shutdown)

    # --- ledgers ------------------------------------------------------------------------------------------------------

    async def new_id(self) -> int:
        """An id that nobody was given before."""
        return await self.run(self.driver.ledgers.new_id)

    async def create(self, ledger: int, metadata: LedgerMetadata) -> Versioned[LedgerMetadata]:
        """LedgerExists."""
        return await self.run(self.driver.ledgers.create, ledger, metadata)

    async def read(self, ledger: int) -> Versioned[LedgerMetadata]:
        """NoSuchLedgerMetadata."""
        return await self.run(self.driver.ledgers.read, ledger)

    async def write(self, ledger: int, metadata: LedgerMetadata, version: int) -> Versioned[LedgerMetadata]:
        """MetadataVersionConflict, NoSuchLedgerMetadata."""
        return await self.run(self.driver.ledgers.write, ledger, metadata, version)

    async def delete(self, ledger: int, version: int | None = None) -> None:
        """MetadataVersionConflict, NoSuchLedgerMetadata."""
        await self.run(self.driver.ledgers.delete, ledger, version)

    async def ledgers(self) -> AsyncIterator[list[int]]:
        """All ledger ids, ascending, in pieces."""
        ranges = self.driver.ledgers.ranges()
        while (ids := await self.run(next, ranges, None)) is not None:
            yield ids

    def watch(self, ledger: int, listener: Callable[[Versioned[LedgerMetadata] | None], None]) -> Subscription:
        """Follow one ledger; None: it does not exist."""
        told = _OnLoop(self._pool, listener)
        return told.of(self.driver.ledgers.watch(ledger, told))

    # --- bookies ------------------------------------------------------------------------------------------------------

    async def bookies(self, *, read_only: bool) -> frozenset[str]:
        """The bookies that are registered in this mode."""
        return await self.run(self.driver.bookies.present, read_only=read_only)

    async def known_bookies(self) -> frozenset[str]:
        """The bookies that have a cookie."""
        return await self.run(self.driver.bookies.known)

    async def info(self, bookie: str) -> bytes | None:
        """What a bookie publishes (`service_info`); None if it is not registered."""
        return await self.run(self.driver.bookies.info, bookie)

    async def health_checks(self) -> bool:
        """Whether the cluster wants faulty bookies to be quarantined."""
        return await self.run(self.driver.cluster.health_checks)

    def watch_bookies(self, listener: Callable[[frozenset[str]], None], *, read_only: bool) -> Subscription:
        """Follow `bookies`."""
        told = _OnLoop(self._pool, listener)
        return told.of(self.driver.bookies.watch(told, read_only=read_only))


class _OnLoop:
    """A listener that is called on the loop; nothing reaches it once it is closed."""

    def __init__(self, pool: ThreadPoolExecutor, listener: Callable[[T], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._pool = pool
        self._listener: Callable[[T], None] | None = listener
        self._subscription: Subscription | None = None

    def of(self, subscription: Subscription) -> Subscription:
        self._subscription = subscription
        return self

    def __call__(self, value: object) -> None:
        with contextlib.suppress(RuntimeError):  # the loop was closed: nobody listens
            self._loop.call_soon_threadsafe(self._tell, value)

    def _tell(self, value: object) -> None:
        if self._listener is not None:
            self._listener(value)  # type: ignore[arg-type]

    def close(self) -> None:
        self._listener = None
        subscription, self._subscription = self._subscription, None
        if subscription is not None:
            with contextlib.suppress(RuntimeError):  # the store was closed, and its watches with it
                self._pool.submit(subscription.close)  # it waits for a read that is under way
