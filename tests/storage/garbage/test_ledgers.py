"""B12: a ledger is deleted only if the right metadata store confirms it individually. The stores are real ones,
embedded and ZooKeeper; of the ledger directory only its ids and the deletions matter here.
"""

import itertools
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from kazoo.client import KazooClient

from bookie.metadata import open_driver
from bookie.metadata.driver import ClusterSeen, MetadataDriver
from bookie.metadata.records.ledger_metadata import LedgerMetadata, LedgerState, Segment
from bookie.server.storage.own_ledgers import LedgersOfBookie
from bookie.storage.garbage.counters import Counters, OfDirectory
from bookie.storage.garbage.decision import Ids
from bookie.storage.garbage.ledgers import LedgerCollector
from bookie.storage.garbage.settings import GarbageSettings
from tests.fixtures.zookeeper import ZooKeeperServer

OURS, OTHER = "10.0.0.1:3181", "10.0.0.2:3181"
LEDGERS = range(100, 140)


class Recorder:
    """A ledger directory with ledgers only."""

    def __init__(self, ids: range) -> None:
        self.ids = set(ids)
        self.deleted: list[int] = []
        self.fences_dropped: list[int] = []

    def ledger_ids(self) -> Ids:
        return np.array(sorted(self.ids), np.int64)

    def delete_ledgers(self, ledgers: Ids) -> None:
        self.deleted += ledgers.tolist()
        self.ids -= set(ledgers.tolist())

    def drop_fences(self, kept_ms: int) -> int:
        self.fences_dropped.append(kept_ms)
        return 0


class World:
    """One bookie with 40 ledgers in two directories, and a metadata store with all of them."""

    def __init__(self, driver: MetadataDriver) -> None:
        self.driver = driver
        driver.cluster.initialize()
        self.instance = driver.cluster.instance_id()
        self.directories = [Recorder(LEDGERS[::2]), Recorder(LEDGERS[1::2])]
        self.checkpoints = 0
        self.counters = Counters([OfDirectory() for _ in self.directories])
        for ledger in LEDGERS:
            self.create(ledger)

    def create(self, ledger: int, bookie: str = OURS, *, closed: bool = False) -> None:
        """Create a ledger in the metadata store."""
        segment = Segment(0, (bookie,))
        state = LedgerState.CLOSED if closed else LedgerState.OPEN
        metadata = LedgerMetadata(ensemble_size=1, write_quorum=1, ack_quorum=1, segments=(segment,), state=state)
        self.driver.ledgers.create(ledger, metadata)

    def collector(self, driver: MetadataDriver | None = None, **settings: object) -> LedgerCollector:
        """Return a collector as the server makes it."""
        return LedgerCollector(
            GarbageSettings(**settings),  # type: ignore[arg-type]
            self.directories,
            LedgersOfBookie(driver or self.driver, ["bookie-one", OURS]),
            lambda: self.instance,
            self._checkpoint,
            self.counters,
            threading.Event(),
        )

    def _checkpoint(self) -> bool:
        assert not self.deleted, "a deletion came before its checkpoint"
        self.checkpoints += 1
        return True

    @property
    def deleted(self) -> list[int]:
        return sorted(ledger for directory in self.directories for ledger in directory.deleted)


NewStore = Callable[[str], MetadataDriver]


@pytest.fixture(params=["embedded", pytest.param("zookeeper", marks=pytest.mark.interop)])
def new_store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[NewStore]:
    """Opens a store that nothing has used before, by a name."""
    opened: list[MetadataDriver] = []
    server: ZooKeeperServer | None = None
    if request.param == "zookeeper":
        server = request.getfixturevalue("zookeeper")

    def make(name: str) -> MetadataDriver:
        uri = f"zk+hierarchical://{server.address}{server.new_root()}" if server else f"lmdb://{tmp_path / name}"
        driver = open_driver(uri, session_timeout_ms=2000)
        driver.start()
        opened.append(driver)
        return driver

    yield make
    for driver in opened:
        driver.stop()


@pytest.fixture
def world(new_store: NewStore) -> World:
    """The bookie and its store."""
    return World(new_store("ours"))


def test_what_was_deleted_goes_and_nothing_else(world: World) -> None:
    """A checkpoint comes first; a ledger that was created meanwhile, or is stored elsewhere, stays."""
    for ledger in (100, 101, 117):
        world.driver.ledgers.delete(ledger)
    assert world.collector().run(over_replicated=False, mass_deletion=False)
    assert world.deleted == [100, 101, 117]
    assert world.checkpoints == 1
    assert world.collector().run(over_replicated=False, mass_deletion=False)
    assert (len(world.deleted), world.checkpoints) == (3, 1)
    assert world.counters.stats()["gc_deleted_ledger_total"] == 3


def test_old_fences_go_with_each_cycle_that_ends_well(world: World) -> None:
    """Fences a week old are dropped in every directory, but are kept while the metadata store cannot be reached."""
    assert world.collector().run(over_replicated=False, mass_deletion=False)
    assert [directory.fences_dropped for directory in world.directories] == [[7 * 86_400_000]] * 2
    world.instance = "another"
    assert not world.collector().run(over_replicated=False, mass_deletion=False)
    assert [len(directory.fences_dropped) for directory in world.directories] == [1, 1]


def test_b12_another_cluster_deletes_nothing(world: World, new_store: NewStore) -> None:
    """metadataServiceUri was changed to a store with another cluster, with or without ledgers."""
    other = new_store("other")
    other.cluster.initialize()
    assert not world.collector(other).run(over_replicated=True, mass_deletion=True)
    other.ledgers.create(1, world.driver.ledgers.read(100).value)
    assert not world.collector(other).run(over_replicated=True, mass_deletion=True)
    assert not world.deleted
    assert world.counters.failed_cycles == 2


def test_b12_an_empty_store_deletes_nothing(world: World, new_store: NewStore) -> None:
    """The store holds no cluster at all."""
    assert not world.collector(new_store("empty")).run(over_replicated=True, mass_deletion=True)
    assert not world.deleted


def test_b12_a_store_without_any_ledger_deletes_nothing(world: World) -> None:
    """In the right cluster without any ledgers, nothing is deleted, not even few enough to raise no alarm."""
    for ledger in LEDGERS:
        world.driver.ledgers.delete(ledger)
    world.directories[:] = [Recorder(LEDGERS[:3])]
    del world.counters.directories[1:]
    collector = world.collector()
    assert collector.run(over_replicated=True, mass_deletion=False)
    assert collector.alarm is None
    assert not world.deleted
    world.create(999)
    assert collector.run(over_replicated=False, mass_deletion=False)
    assert world.deleted == list(LEDGERS[:3])


def test_a_list_that_stays_empty_gives_all_space_back(world: World) -> None:
    """A store without ledgers is believed at a later look, without an operator's word, however many they are."""
    collector = world.collector(empty_list_wait_ms=1)
    for ledger in LEDGERS:
        world.driver.ledgers.delete(ledger)
    assert collector.run(over_replicated=False, mass_deletion=False)
    assert not world.deleted
    while not world.deleted:
        assert collector.run(over_replicated=True, mass_deletion=False)
    assert world.deleted == list(LEDGERS)
    assert world.checkpoints == 1
    assert collector.alarm is None


def test_b12_an_empty_list_is_not_believed_too_early(world: World) -> None:
    """It is not before its time, and never if that is switched off, however often the collection looks."""
    for ledger in LEDGERS:
        world.driver.ledgers.delete(ledger)
    for collector in (world.collector(), world.collector(on_empty_list=False, empty_list_wait_ms=1)):
        for _ in range(20):
            assert collector.run(over_replicated=True, mass_deletion=False)
    assert not world.deleted


@pytest.mark.parametrize("between", ["a ledger", "an error"])
def test_b12_the_time_of_an_empty_list_begins_anew(world: World, between: str) -> None:
    """Whatever was seen before a ledger was listed, or the store failed, does not count."""
    driver = Lying(world, world.driver.ledgers.ranges)
    collector = world.collector(driver, empty_list_wait_ms=1)  # type: ignore[arg-type]
    for ledger in LEDGERS:
        world.driver.ledgers.delete(ledger)

    def fails() -> Iterator[list[int]]:
        raise ConnectionError("gone")

    for _ in range(5):
        assert collector.run(over_replicated=False, mass_deletion=False)
        driver.ranges = fails if between == "an error" else lambda: iter([[*LEDGERS]])
        collector.run(over_replicated=False, mass_deletion=False)
        driver.ranges = world.driver.ledgers.ranges
    assert not world.deleted


@pytest.mark.parametrize("change", ["session", "layout", "instance_id"])
def test_b12_an_empty_list_of_a_store_that_changes_is_not_believed(world: World, change: str) -> None:
    """Layout, instance id and session must be the same before and after the list. Another server may have answered in
    between, with another tree, or with one that is being restored.
    """
    driver = Lying(world, world.driver.ledgers.ranges)
    numbers = itertools.count()
    real = world.driver.cluster

    class Changing:
        instance_id = staticmethod(real.instance_id)

        def seen(self) -> ClusterSeen:
            number = next(numbers)
            return replace(real.seen(), **{change: number if change == "session" else str(number)})  # type: ignore[arg-type]

    driver.cluster = Changing()  # type: ignore[assignment]
    collector = world.collector(driver, empty_list_wait_ms=1)  # type: ignore[arg-type]
    for ledger in LEDGERS:
        world.driver.ledgers.delete(ledger)
    for _ in range(5):
        assert collector.run(over_replicated=False, mass_deletion=False)
    assert not world.deleted
    assert next(numbers) == 10


def test_b12_a_store_that_lost_its_ledgers_raises_an_alarm(world: World) -> None:
    """The cluster is the right one, but most ledgers are gone: nothing is deleted until an operator confirms it."""
    for ledger in LEDGERS[:21]:
        world.driver.ledgers.delete(ledger)
    collector = world.collector()
    collector.run(over_replicated=False, mass_deletion=False)
    assert "21 of 40" in (collector.alarm.text if collector.alarm else "")
    for ledger in LEDGERS[:20]:
        world.create(ledger)
    assert not collector.run(over_replicated=False, mass_deletion=False), "an alarm ends by an operator's word only"
    assert not world.deleted
    assert collector.run(over_replicated=False, mass_deletion=True)
    assert collector.alarm is None
    assert world.deleted == [120]


def test_b12_a_store_that_does_not_answer_deletes_nothing(world: World) -> None:
    """The store does not answer."""
    world.driver.ledgers.delete(100)
    world.driver.stop()
    assert not world.collector().run(over_replicated=True, mass_deletion=True)
    assert not world.deleted


@pytest.mark.interop
def test_b12_a_zookeeper_that_lost_its_root_or_died_deletes_nothing(own_zookeeper: ZooKeeperServer) -> None:
    """Under a session that worked before, first the root is removed by mistake, then the server dies."""
    uri = f"zk+hierarchical://{own_zookeeper.address}{own_zookeeper.new_root()}"
    driver = open_driver(uri, session_timeout_ms=2000)
    driver.start()
    try:
        world = World(driver)
        zk = KazooClient(own_zookeeper.address)
        zk.start()
        zk.delete(uri[uri.rindex("/") :], recursive=True)
        zk.stop()
        zk.close()
        assert not world.collector().run(over_replicated=True, mass_deletion=True)
        own_zookeeper.kill()
        assert not world.collector().run(over_replicated=True, mass_deletion=True)
        assert not world.deleted
    finally:
        driver.stop()


class Lying:
    """The store's ledgers, with a listing that differs from them."""

    def __init__(self, world: World, listing: Callable[[], Iterator[list[int]]]) -> None:
        self._true = world.driver.ledgers
        self.cluster = world.driver.cluster
        self.ledgers = self
        self.ranges = listing
        self.read = self._true.read


def test_b12_a_listing_that_ends_early_deletes_nothing(world: World) -> None:
    """Each candidate is read separately, and exists."""
    world.driver.ledgers.delete(130)
    driver = Lying(world, lambda: iter([[*LEDGERS[:25]]]))
    assert world.collector(driver).run(over_replicated=False, mass_deletion=False)  # type: ignore[arg-type]
    assert world.deleted == [130]


def test_b12_a_listing_that_fails_or_runs_backwards_deletes_nothing(world: World) -> None:
    """Nothing is deleted, whatever was listed before the failure."""
    world.driver.ledgers.delete(100)

    def fails() -> Iterator[list[int]]:
        yield [*LEDGERS[1:5]]
        raise ConnectionError("gone")

    backwards = lambda: iter([[*LEDGERS[5:]], [*LEDGERS[1:5]]])  # noqa: E731
    for listing in (fails, backwards):
        driver = Lying(world, listing)
        assert not world.collector(driver).run(over_replicated=False, mass_deletion=True)  # type: ignore[arg-type]
    assert not world.deleted


def test_over_replicated_ledgers_go_when_seen_twice(world: World) -> None:
    """They are closed, in no ensemble of this bookie's names in two consecutive checks, and nobody is copying them."""
    for ledger in LEDGERS[:4]:
        world.driver.ledgers.delete(ledger)
    world.create(100, OTHER, closed=True)
    world.create(101, OTHER)
    world.create(102, "bookie-one", closed=True)
    world.create(103, OTHER, closed=True)
    collector = world.collector()
    collector.run(over_replicated=True, mass_deletion=False)
    assert not world.deleted
    with world.driver.replication.lock(103) as held:
        assert held
        collector.run(over_replicated=True, mass_deletion=False)
    assert world.deleted == [100]
    assert world.counters.over_replicated == 1


def test_bug_36_what_is_copied_here_again_is_not_deleted_at_once(world: World) -> None:
    """bookkeeper#4668: a recovery by hand takes no lock, and copies to a bookie that has just deleted the ledger.

    Earlier observations no longer count then, and once the metadata name this bookie the ledger stays.
    """
    world.driver.ledgers.delete(100)
    world.create(100, OTHER, closed=True)
    collector = world.collector()
    for _ in range(2):
        collector.run(over_replicated=True, mass_deletion=False)
    assert world.deleted == [100]
    world.directories[0].ids.add(100)
    collector.run(over_replicated=True, mass_deletion=False)
    world.driver.ledgers.delete(100)
    world.create(100, OURS, closed=True)
    collector.run(over_replicated=True, mass_deletion=False)
    assert world.deleted == [100]
    assert 100 in world.directories[0].ids
