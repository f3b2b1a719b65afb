"""The real client in a cluster's world, over sockets and the driver of the metadata store, and real auto-recovery."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from bookie.client.bookies.client import BookieClient
from bookie.client.bookies.stores import MetadataStore, on_loop
from bookie.client.config import ClientConfig
from bookie.client.entries.batch import StoredBatch
from bookie.client.entries.read_answers import ReadAnswers
from bookie.client.ledgers.context import ClientContext
from bookie.client.ledgers.members import Members
from bookie.client.placement.factory import placement_for
from bookie.client.replication import service
from bookie.client.replication.contracts import Cluster, Environment
from bookie.client.replication.opening import OpenedLedgers
from bookie.client.wire.answers_v3 import ReadAnswer
from bookie.client.wire.flags import LAST_ENTRY, Flags
from bookie.errors import BookKeeperError, MetadataStoreError
from tests.engine.cluster.recovering import RecordedQueue
from tests.sim.events import Event
from tests.sim.face import Client
from tests.sim.real_client import RealClient
from tests.sim.world import World

if TYPE_CHECKING:
    from tests.engine.cluster.world import ClusterWorld

__all__ = ["connected_client", "RecordedBookies"]

T = TypeVar("T")
RETRY_S = 0.1


async def connected_client(world: World, who: str, config: ClientConfig, rng: random.Random) -> Client:
    """Return a client with its own session, for `Scenario`. It waits until the metadata store answers."""
    cluster_world = cast("ClusterWorld", world)
    connection = next(one for one in cluster_world.stores if one.who == who)
    store = MetadataStore(connection.driver(cluster_world.draw.session_s), threads=rng.choice((1, 3)))
    placement = placement_for(config, rng, world.loop.time)
    await _insist(lambda: store.run(store.driver.start))
    await _insist(Members(store, placement.bookies_changed).start)
    return ConnectedClient(cluster_world, ClientContext(config, cluster_world.clients[who], store, placement, rng))


async def _insist(call: Callable[[], Awaitable[None]]) -> None:
    """Call until the metadata store answers."""
    while True:
        try:
            await call()
        except MetadataStoreError:
            await asyncio.sleep(RETRY_S)
        else:
            return


class ConnectedClient(RealClient):
    """A client of one process, which can also run auto-recovery."""

    def __init__(self, world: "ClusterWorld", context: ClientContext) -> None:
        super().__init__(context)
        self._world = world

    async def replicate(self, ledger: int, patience_s: float) -> None:
        """Stand for auditor, and work on marked ledgers, until cancelled."""
        del ledger, patience_s
        context, cluster = self._context, Cluster()
        store = cast("MetadataStore", context.metadata)
        bookies = cast("RecordedBookies", context.bookies)
        environment = Environment(
            name=bookies.who,
            queue=RecordedQueue(store, bookies.who, bookies.history),
            metadata=store,
            bookies=bookies,
            ledgers=OpenedLedgers(context),
            placement=context.placement,
            cluster=cluster,
            config=context.config,
            settings=self._world.draw.recovery,
            random=context.random,
            epoch_ms=context.epoch_ms,
        )
        store.driver.bookies.on_interruption(on_loop(cluster.interrupted))
        members = Members(store, cluster.changed)
        try:
            await _started(members)
            await service._serve_sessions(environment, store)
        finally:
            members.close()


async def _started(members: Members) -> None:
    """Start as often as it takes, as an operator's service manager does while the store is out of reach."""
    while True:
        try:
            return await members.start()
        except MetadataStoreError:
            members.close()
            await asyncio.sleep(RETRY_S)


class RecordedBookies(BookieClient):
    """A client's bookies. A bookie's answers are recorded from the fence on, which the client needs for a recovery."""

    def __init__(self, config: ClientConfig, who: str, history: list[Event]) -> None:
        super().__init__(config)
        self.who = who
        self.history = history
        self.alive = True
        self._fenced: set[str] = set()
        self._loop = asyncio.get_running_loop()

    def crash(self) -> None:
        """End the process of this client: what it sent stays sent, and it learns nothing more."""
        self.alive = False
        self._ending = self._loop.create_task(self.close())

    async def read(
        self, bookie: str, ledger: int, entry: int, *, flags: int = 0, master_key: bytes | None = None
    ) -> ReadAnswer:
        answer = super().read(bookie, ledger, entry, flags=flags, master_key=master_key)
        return await self._recorded(answer, bookie, ledger, entry, flags)

    async def read_many(self, bookie: str, ledger: int, entries: NDArray[np.int64]) -> ReadAnswers:
        answers = await super().read_many(bookie, ledger, entries)
        for entry in entries.tolist():
            error = answers.errors.get(entry)
            if error is not None or answers.run.stored(entry) is not None:
                self._say(bookie, ledger, entry, error.code if error else 0)
        return answers

    async def batch_read(self, bookie: str, ledger: int, start: int, *options: Any, **more: Any) -> StoredBatch:
        answer = super().batch_read(bookie, ledger, start, *options, **more)
        return await self._recorded(answer, bookie, ledger, start, more.get("flags", 0))

    async def _recorded(self, answer: Awaitable[T], bookie: str, ledger: int, entry: int, flags: int) -> T:
        fences = bool(flags & Flags.FENCE)
        try:
            value = await answer
        except BookKeeperError as error:
            if fences and error.code in (-13, -7):
                self._fenced.add(bookie)
            self._say(bookie, ledger, entry, error.code)
            raise
        if fences:
            self._fenced.add(bookie)
        self._say(bookie, ledger, LAST_ENTRY if fences and entry < 0 else entry, 0)
        return value

    def _say(self, bookie: str, ledger: int, entry: int, code: int) -> None:
        if self.alive and bookie in self._fenced:
            self.history.append(Event(self._loop.time(), self.who, "answered", ledger, entry, bookie, code))
