"""Auto-recovery as a service: a candidate for auditor and a replication worker, on an event loop on one thread.

`AutoRecovery` is started and stopped from any other thread: by `bookie-server` if `autoRecoveryDaemonEnabled` is set,
or by `run_alone`, in a process of its own.
"""

import asyncio
import contextlib
import logging
import signal
import threading
from collections.abc import AsyncIterator, Callable, Mapping
from random import Random
from typing import Any

from bookie.client.bookies.stores import MetadataStore, on_loop
from bookie.client.config import ClientConfig
from bookie.client.event_loop.stop import Stop
from bookie.client.event_loop.together import together
from bookie.client.known_cluster import KnownCluster
from bookie.client.placement.bookie_info import free_bytes
from bookie.client.placement.chances import placement_families
from bookie.client.replication.auditor import Auditor
from bookie.client.replication.contracts import Cluster, Environment
from bookie.client.replication.counters import Counters
from bookie.client.replication.opening import OpenedLedgers
from bookie.client.replication.settings import RecoverySettings
from bookie.client.replication.stores import StoredQueue
from bookie.client.replication.worker import ReplicationWorker
from bookie.errors import BookKeeperError, MetadataStoreError
from bookie.metadata import open_driver
from bookie.metadata.driver import MetadataDriver
from bookie.metrics.family import Family

__all__ = ["AutoRecovery", "connected", "opened", "run_alone", "serve", "split"]

RETRY_S = 5.0
log = logging.getLogger(__name__)


class AutoRecovery:
    """The service. It starts and stops the driver.

    Args:
        name: The bookie's id, or any name that is unique in the cluster.
        driver: The driver of the metadata store.
        config: The settings of the client.
        settings: The settings of auto-recovery.
    """

    def __init__(
        self,
        name: str,
        driver: MetadataDriver,
        config: ClientConfig,
        settings: RecoverySettings,
    ) -> None:
        self.counters = Counters()
        self._name = name
        self._driver = driver
        self._config = config
        self._settings = settings
        self._thread = threading.Thread(target=self._run, name="autorecovery", daemon=True)
        self._stop = Stop()
        self._known: KnownCluster | None = None

    def start(self) -> None:
        """Start the thread. Failures are logged and retried, so that it waits for a cluster that does not run yet."""
        self._thread.start()

    def stop(self) -> None:
        """Release all locks, withdraw from the election, and end the session. Idempotent."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()

    def stats(self) -> Mapping[str, int]:
        """Return the counters and gauges by name."""
        return self.counters.as_stats()

    def families(self) -> list[Family]:
        """Return the weights of bookies, and how they were drawn; nothing unless placement is weighted. Any thread."""
        known = self._known
        if known is None or not self._config.weighted_placement:
            return []
        drawn = dict(known.context.placement.drawn)
        return placement_families(known.writable, dict(known.info.known), drawn, self._config)

    def _knows(self, known: KnownCluster) -> None:
        self._known = known

    def _run(self) -> None:
        with contextlib.suppress(asyncio.CancelledError):
            asyncio.run(self._stop.run(self._serve_until_cancelled()))

    async def _serve_until_cancelled(self) -> None:
        store = await self._opened()
        try:
            async with connected(
                self._name, store, self._config, self._settings, self.counters, self._knows
            ) as environment:
                await _serve_sessions(environment, store)
        except Exception:
            log.exception("autorecovery ended by an error")
            raise
        finally:
            await store.close()

    async def _opened(self) -> MetadataStore:
        while True:
            try:
                return await MetadataStore.open(self._driver)
            except MetadataStoreError as error:
                log.warning("autorecovery waits for the metadata store error=%s", error)
                await asyncio.sleep(RETRY_S)


async def _serve_sessions(environment: Environment, store: MetadataStore) -> None:
    """Run `serve`, and start it again with each new session, since other processes may have taken over the locks."""
    lost = asyncio.Event()
    store.driver.registrations.on_session_loss(on_loop(lost.set))
    while True:
        lost.clear()
        serving, waiting = asyncio.ensure_future(serve(environment)), asyncio.ensure_future(lost.wait())
        try:
            await asyncio.wait([serving, waiting], return_when=asyncio.FIRST_COMPLETED)
            if serving.done():
                await serving
            environment.counters.sessions_lost += 1
            log.warning("session expired, restarting auditor and worker name=%s", environment.name)
        finally:
            for task in (serving, waiting):
                task.cancel()
            await asyncio.gather(serving, waiting, return_exceptions=True)


async def serve(environment: Environment) -> None:
    """Audit and replicate until cancelled."""
    await together([Auditor(environment).run(), ReplicationWorker(environment).run()])


@contextlib.asynccontextmanager
async def connected(
    name: str,
    store: MetadataStore,
    config: ClientConfig,
    settings: RecoverySettings,
    counters: Counters | None = None,
    knows: Callable[[KnownCluster], None] = lambda _known: None,
) -> AsyncIterator[Environment]:
    """Yield what the parts of auto-recovery share, over real bookies and an open store, which stays open.

    All bookies are known when it is yielded, and are watched. `knows` gets what is known about them before that.
    """
    cluster = Cluster()
    store.driver.bookies.on_interruption(on_loop(cluster.interrupted))
    known = await KnownCluster.over(store, config, Random(), cluster.changed)
    context = known.context
    knows(known)
    try:
        await _started(known)
        if config.weighted_placement and config.weight_paced_replication:
            known.info.subscribe(lambda found: cluster.room(free_bytes(found)))
        yield Environment(
            name=name,
            queue=StoredQueue(store),
            metadata=store,
            bookies=known.bookies,
            ledgers=OpenedLedgers(context),
            placement=context.placement,
            cluster=cluster,
            config=config,
            settings=settings,
            random=context.random,
            epoch_ms=context.epoch_ms,
            counters=counters or Counters(),
        )
    finally:
        await known.close()


@contextlib.asynccontextmanager
async def opened(name: str, driver: MetadataDriver, given: Mapping[str, Any]) -> AsyncIterator[Environment]:
    """Yield the same for one task. The driver is started, and stopped at the end; `given` is that of `split`.

    Raises ConfigurationError or MetadataStoreError.
    """
    config, settings = split(given)
    store = await MetadataStore.open(driver)
    try:
        async with connected(name, store, config, settings) as environment:
            yield environment
    finally:
        await store.close()


async def _started(known: KnownCluster) -> None:
    while True:
        try:
            await known.start()
        except BookKeeperError as error:
            if not error.retriable:
                raise
            log.warning("autorecovery waits for the metadata store error=%s", error)
            await asyncio.sleep(RETRY_S)
        else:
            return


def split(given: Mapping[str, Any]) -> tuple[ClientConfig, RecoverySettings]:
    """Divide keys into settings of the client and settings of auto-recovery. Raises ConfigurationError."""
    own = {one.metadata["key"] for one in RecoverySettings.__dataclass_fields__.values()}
    recovery = {name: value for name, value in given.items() if name in own}
    return ClientConfig.of({k: v for k, v in given.items() if k not in own}), RecoverySettings.of(recovery)


def run_alone(name: str, uri: str, given: Mapping[str, Any]) -> None:
    """Run auto-recovery in a process of its own until SIGTERM or SIGINT. Call it on the main thread.

    Args:
        name: A name that is unique in the cluster.
        uri: The URI of the metadata store.
        given: Keys of the client and of auto-recovery, with their values.

    Raises:
        ConfigurationError: A setting or the URI is wrong.
    """
    config, settings = split(given)
    driver = open_driver(uri, session_timeout_ms=round(config.session_timeout_s * 1000), create=False)
    service, stopped = AutoRecovery(name, driver, config, settings), threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopped.set())
    service.start()
    stopped.wait()
    service.stop()
