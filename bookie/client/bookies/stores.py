"""The metadata store without blocking: `contracts.Metadata` over a driver whose calls block.

Calls run on a few threads of their own, and the events of watches arrive on the event loop. The driver is started and
stopped with this object.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Generic, ParamSpec, Self, TypeVar

from bookie.client.event_loop.pages import Pages
from bookie.errors import BookKeeperError, ClientClosed
from bookie.metadata.driver import MetadataDriver, Subscription, Versioned
from bookie.metadata.patience import carried
from bookie.metadata.records.ledger_metadata import LedgerMetadata

__all__ = ["MetadataStore", "on_loop"]

log = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")
THREADS = 4


class MetadataStore:
    """A metadata store. Create it with `open`, end it with `close`.

    `driver` is for operations that `contracts.Metadata` does not have; its calls block.
    """

    def __init__(self, driver: MetadataDriver, *, threads: int = THREADS) -> None:
        self.driver = driver
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="metadata")
        self._closed = False

    @classmethod
    async def open(cls, driver: MetadataDriver, *, threads: int = THREADS) -> Self:
        """Connect to the store. Raises MetadataStoreError or ClusterNotInitialized."""
        store = cls(driver, threads=threads)
        try:
            await store.run(driver.start)
        except BaseException:
            await store.close()
            raise
        return store

    async def run(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a blocking call of the driver on one of the store's threads. Raises ClientClosed, also if the interpreter
        is exiting and its threads take no more calls. The call waits for the store no longer than one of the caller's
        thread would (`metadata.patience`).
        """
        if self._closed:
            raise ClientClosed("the metadata store was closed")
        try:
            running = asyncio.get_running_loop().run_in_executor(self._pool, carried(partial(call, *args, **kwargs)))
        except RuntimeError as error:
            raise ClientClosed(f"the metadata store cannot be asked any more: {error}") from error
        return await running

    def subscribed(
        self, watch: Callable[[Callable[[T], None]], Subscription], listener: Callable[[T], None]
    ) -> Subscription:
        """Pass the events of a watch of the driver to a listener on the event loop.

        Closing the subscription does not block, and no event arrives after it.
        """
        return _Subscription(self._pool, watch, listener)

    async def close(self) -> None:
        """End the session, after the calls that are running have ended. Idempotent."""
        if self._closed:
            return
        self._closed = True
        loop = asyncio.get_running_loop()
        try:
            stopped = loop.run_in_executor(self._pool, self.driver.stop)
        except (
            RuntimeError
        ):  # at the interpreter's exit the threads are joined before `atexit` callbacks close the store
            self.driver.stop()
            return
        await stopped
        await loop.run_in_executor(None, self._pool.shutdown)

    # --- ledgers ------------------------------------------------------------------------------------------------------

    async def new_id(self) -> int:
        """Return a ledger id that was never assigned before."""
        return await self.run(self.driver.ledgers.new_id)

    async def create(self, ledger: int, metadata: LedgerMetadata) -> Versioned[LedgerMetadata]:
        """Create a ledger. Raises LedgerExists."""
        return await self.run(self.driver.ledgers.create, ledger, metadata)

    async def read(self, ledger: int, *, latest: bool = False) -> Versioned[LedgerMetadata]:
        """Read a ledger's metadata, with `latest` not older than the call. Raises NoSuchLedgerMetadata."""
        return await self.run(self.driver.ledgers.read, ledger, latest=latest)

    async def write(self, ledger: int, metadata: LedgerMetadata, version: int) -> Versioned[LedgerMetadata]:
        """Replace a ledger's metadata. Raises MetadataVersionConflict or NoSuchLedgerMetadata."""
        return await self.run(self.driver.ledgers.write, ledger, metadata, version)

    async def delete(self, ledger: int, version: int | None = None) -> None:
        """Delete a ledger. Raises MetadataVersionConflict or NoSuchLedgerMetadata."""
        await self.run(self.driver.ledgers.delete, ledger, version)

    def ledgers(self) -> AsyncIterator[list[int]]:
        """Return all ledger ids in ascending order, in lists of the size that the store returns."""
        ranges = self.driver.ledgers.ranges()
        return Pages(lambda: self.run(next, ranges, None))

    def watch(self, ledger: int, listener: Callable[[Versioned[LedgerMetadata] | None], None]) -> Subscription:
        """Watch one ledger; the listener receives None if it does not exist."""
        return self.subscribed(partial(self.driver.ledgers.watch, ledger), listener)

    # --- bookies ------------------------------------------------------------------------------------------------------

    async def bookies(self, *, read_only: bool) -> frozenset[str]:
        """Return the bookies that are registered as writable, or as read-only."""
        return await self.run(self.driver.bookies.present, read_only=read_only)

    async def known_bookies(self) -> frozenset[str]:
        """Return the bookies that have a cookie."""
        return await self.run(self.driver.bookies.known)

    async def info(self, bookie: str) -> bytes | None:
        """Return what a bookie publishes (`bookies.service_info`), or None if it is not registered."""
        return await self.run(self.driver.bookies.info, bookie)

    async def health_checks(self) -> bool:
        """Return whether the cluster wants faulty bookies to be quarantined."""
        return await self.run(self.driver.cluster.health_checks)

    def watch_bookies(self, listener: Callable[[frozenset[str]], None], *, read_only: bool) -> Subscription:
        """Watch the bookies that are registered as writable, or as read-only."""
        return self.subscribed(partial(self.driver.bookies.watch, read_only=read_only), listener)


def on_loop(call: Callable[P, object]) -> Callable[P, None]:
    """Return a function for any thread that calls `call` on this event loop, and does nothing once the loop is
    closed.
    """
    loop = asyncio.get_running_loop()

    def relay(*args: P.args, **kwargs: P.kwargs) -> None:
        with contextlib.suppress(RuntimeError):  # the loop was closed, so there is no listener
            loop.call_soon_threadsafe(partial(call, *args, **kwargs))

    return relay


class _Subscription(Generic[T]):
    """A subscription whose listener is called on the event loop, and never after it was closed."""

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
                self._pool.submit(_end, subscription)  # closing waits for a read that is running


def _end(subscription: Subscription) -> None:
    try:
        subscription.close()
    except BookKeeperError as error:
        log.warning("a watch could not be removed and stays until the session ends: %s", error)
