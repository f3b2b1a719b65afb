"""The metadata store without blocking: `contracts.Metadata` over a driver whose calls block.

Calls run in a few threads of their own; what a watch tells arrives on the event loop. The driver is started and stopped
with this object.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Generic, ParamSpec, Self, TypeVar

from bookie.errors import BookKeeperError, ClientClosed
from bookie.metadata.driver import MetadataDriver, Subscription, Versioned
from bookie.metadata.records.ledger_metadata import LedgerMetadata

__all__ = ["MetadataStore", "on_loop"]

log = logging.getLogger(__name__)

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

    def subscribed(
        self, watch: Callable[[Callable[[T], None]], Subscription], listener: Callable[[T], None]
    ) -> Subscription:
        """What `watch` of the driver's tells, on the loop. Its end does not block, and nothing comes behind it."""
        return _Subscription(self._pool, watch, listener)

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
        return self.subscribed(partial(self.driver.ledgers.watch, ledger), listener)

    # --- bookies ------------------------------------------------------------------------------------------------------

    async def bookies(self, *, read_only: bool) -> frozenset[str]:
        """The bookies that are registered in this mode."""
        return await self.run(self.driver.bookies.present, read_only=read_only)

    async def known_bookies(self) -> frozenset[str]:
        """The bookies that have a cookie."""
        return await self.run(self.driver.bookies.known)

    async def info(self, bookie: str) -> bytes | None:
        """What a bookie publishes (`bookies.service_info`); None if it is not registered."""
        return await self.run(self.driver.bookies.info, bookie)

    async def health_checks(self) -> bool:
        """Whether the cluster wants faulty bookies to be quarantined."""
        return await self.run(self.driver.cluster.health_checks)

    def watch_bookies(self, listener: Callable[[frozenset[str]], None], *, read_only: bool) -> Subscription:
        """Follow `bookies`."""
        return self.subscribed(partial(self.driver.bookies.watch, read_only=read_only), listener)


def on_loop(call: Callable[P, object]) -> Callable[P, None]:
    """For any thread: `call` on this event loop; nothing once the loop was closed."""
    loop = asyncio.get_running_loop()

    def told(*args: P.args, **kwargs: P.kwargs) -> None:
        with contextlib.suppress(RuntimeError):  # the loop was closed: nobody listens
            loop.call_soon_threadsafe(partial(call, *args, **kwargs))

    return told


class _Subscription(Generic[T]):
    """Whose listener is called on the loop; nothing reaches it once it is closed."""

    def __init__(
        self,
        pool: ThreadPoolExecutor,
        watch: Callable[[Callable[[T], None]], Subscription],
        listener: Callable[[T], None],
    ) -> None:
        self._pool = pool
        self._listener: Callable[[T], None] | None = listener
        self._subscription: Subscription | None = watch(on_loop(self._tell))

    def _tell(self, value: T) -> None:
        if self._listener is not None:
            self._listener(value)

    def close(self) -> None:
        self._listener = None
        subscription, self._subscription = self._subscription, None
        if subscription is not None:
            with contextlib.suppress(RuntimeError):  # the store was closed, and its watches with it
                self._pool.submit(_end, subscription)  # it waits for a read that is under way


def _end(subscription: Subscription) -> None:
    try:
        subscription.close()
    except BookKeeperError as error:
        log.warning("a watch ends with its session only: %s", error)
