"""A cluster's metadata copied from one store to another: complete, continued after an end, never over one in use."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest

from bookie.errors import ClusterNotInitialized, IllegalOperation
from bookie.metadata import copying, open_driver
from bookie.metadata.driver import MetadataDriver
from bookie.metadata.records.ledger_metadata import LedgerMetadata, LedgerState, Segment
from bookie.metadata.records.logs import Log
from bookie.metadata.records.replication import Check
from tests.fixtures.etcd import EtcdCluster
from tests.fixtures.zookeeper import ZooKeeperServer

pytestmark = pytest.mark.leaks("gRPC keeps threads of its own for the life of the process")

METADATA = LedgerMetadata(ensemble_size=1, write_quorum=1, ack_quorum=1, segments=(Segment(0, ("a:3181",)),))
CLOSED = replace(METADATA, state=LedgerState.CLOSED, length=10, last_entry=4, custom={"app": b"test"})
FAR = (1 << 62) + 5
NAMES = ("a:3181", "b:3181", "c:3181")


class Running:
    """A started driver."""

    def __init__(self, uri: str) -> None:
        self.driver = open_driver(uri)
        self.driver.start()

    def close(self) -> None:
        """Stop it."""
        self.driver.stop()


@pytest.fixture
def new_store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[str], MetadataDriver]]:
    """A function that opens a new, empty store of a kind."""
    opened: list[Running] = []

    def make(kind: str) -> MetadataDriver:
        if kind == "zookeeper":
            server: ZooKeeperServer = request.getfixturevalue("zookeeper")
            uri = f"zk+hierarchical://{server.address}{server.new_root()}"
        elif kind == "etcd":
            etcd: EtcdCluster = request.getfixturevalue("etcd")
            uri = f"etcd://{etcd.addresses}{etcd.new_scope()}"
        else:
            uri = f"lmdb://{tmp_path}/store-{len(opened)}"
        opened.append(Running(uri))
        return opened[-1].driver

    yield make
    for one in opened:
        one.close()


def fill(driver: MetadataDriver) -> None:
    """Store some of everything that a cluster has."""
    driver.cluster.initialize()
    driver.cluster.enable_health_checks(enabled=False)
    for _ in range(3):
        driver.ledgers.new_id()
    for name in NAMES:
        driver.cookies.write(name, f"cookie of {name}".encode(), None)
    for ledger in range(1, 40):
        driver.ledgers.create(ledger, METADATA if ledger % 3 else CLOSED)
    driver.ledgers.create(FAR, replace(CLOSED, ctime_ms=1234567))
    driver.ledgers.create(50, replace(METADATA, format_version=2))
    driver.logs.create("orders", Log(ledgers=(1, 2)))
    driver.logs.create("events", Log(ledgers=()))
    driver.replication.mark(3, ["b:3181"], 1000)
    driver.replication.mark(4, ["b:3181", "c:3181"], None)
    driver.replication.enable(enabled=False)
    driver.replication.set_lost_bookie_delay_s(77)
    driver.replication.set_last_check_ms(Check.ALL_LEDGERS, 5000)


def whole_copy(source: MetadataDriver, target: MetadataDriver) -> Counter[str]:
    """Copy everything, and return how many things had each outcome."""
    copying.begin(source, target)
    counted = Counter(done.outcome for done in copying.copy(source, target))
    assert copying.finish(source, target) == len(NAMES)
    return counted


KINDS = [
    ("embedded", "embedded"),
    pytest.param("embedded", "etcd", marks=pytest.mark.thorough),
    pytest.param("etcd", "embedded", marks=pytest.mark.thorough),
    pytest.param("etcd", "etcd", marks=pytest.mark.thorough),
    pytest.param("zookeeper", "etcd", marks=pytest.mark.interop),
    pytest.param("etcd", "zookeeper", marks=pytest.mark.interop),
    pytest.param("zookeeper", "embedded", marks=pytest.mark.interop),
]


@pytest.mark.parametrize(("kind", "other"), KINDS)
def test_everything_is_copied(new_store: Callable[[str], MetadataDriver], kind: str, other: str) -> None:
    """All of it reads the same in the other store, a second copy changes nothing, and ids go on after the last one."""
    source, target = new_store(kind), new_store(other)
    fill(source)
    last = source.ledgers.last_id()
    assert whole_copy(source, target)["created"] >= 45
    assert source.ledgers.last_id() == last
    assert target.cluster.instance_id() == source.cluster.instance_id()
    assert not target.cluster.health_checks()
    assert target.bookies.known() == set(NAMES)
    for name in NAMES:
        cookie, copied = source.cookies.read(name), target.cookies.read(name)
        assert cookie is not None
        assert copied is not None
        assert copied[0] == cookie[0]
    ids = [ledger for page in target.ledgers.ranges() for ledger in page]
    assert ids == [*range(1, 40), 50, FAR]
    for ledger in ids:
        was, copied_metadata = source.ledgers.read(ledger), target.ledgers.read(ledger).value
        wanted = replace(was.value, token=0, ctime_ms=was.value.ctime_ms or was.created_ms or None)
        assert replace(copied_metadata, token=0) == wanted
    assert target.logs.read("orders").value == Log(ledgers=(1, 2))
    assert {mark.ledger: mark for page in target.replication.marks() for mark in page} == {
        mark.ledger: mark for page in source.replication.marks() for mark in page
    }
    assert not target.replication.enabled()
    assert target.replication.lost_bookie_delay_s() == 77
    assert target.replication.last_check_ms(Check.ALL_LEDGERS) == 5000
    assert {done.outcome for done in copying.compare(source, target)} == {"equal"}
    assert set(whole_copy(source, target)) == {"equal"}
    assert target.ledgers.new_id() > last


@pytest.mark.parametrize("other", ["embedded", pytest.param("etcd", marks=pytest.mark.thorough)])
def test_a_copy_is_continued(new_store: Callable[[str], MetadataDriver], other: str) -> None:
    """What changed since the interrupted copy is changed in the target, and there are no cookies before the end."""
    source, target = new_store("embedded"), new_store(other)
    fill(source)
    copying.begin(source, target)
    assert len(list(islice(copying.copy(source, target), 20))) == 20
    assert target.bookies.known() == frozenset()
    source.ledgers.delete(2)
    changed = source.ledgers.read(4)
    source.ledgers.write(4, replace(changed.value, state=LedgerState.CLOSED, last_entry=9, length=90), changed.version)
    source.ledgers.create(60, METADATA)
    counted = whole_copy(source, target)
    assert counted["deleted"] == 1
    assert counted["changed"] >= 1
    assert {done.outcome for done in copying.compare(source, target)} == {"equal"}


def test_a_source_that_changes_meanwhile(new_store: Callable[[str], MetadataDriver]) -> None:
    """A ledger that is deleted or created during a pass is seen by a later one."""
    source, target = new_store("embedded"), new_store("embedded")
    fill(source)
    copying.begin(source, target)
    for number, _ in enumerate(copying.copy(source, target)):
        if number == 10:
            source.ledgers.delete(1)
            source.ledgers.create(61, METADATA)
    assert {done.outcome for done in copying.compare(source, target) if done.kind == "ledger"} == {"equal"}

    other = new_store("embedded")
    copying.begin(source, other)

    def restless() -> None:
        for number, _ in enumerate(copying.copy(source, other)):
            if number % 40 == 0:
                source.ledgers.create(100 + number, METADATA)

    with pytest.raises(IllegalOperation, match="each of 5 passes"):
        restless()


def test_what_is_refused(new_store: Callable[[str], MetadataDriver]) -> None:
    """Bookies that write in the source or run on the target, another cluster, and a target that went its own way."""
    source, target = new_store("embedded"), new_store("embedded")
    with pytest.raises(ClusterNotInitialized):
        copying.begin(source, target)
    fill(source)
    source.registrations.register("a:3181", b"", read_only=False)
    with pytest.raises(IllegalOperation, match="bookie a:3181 of the source can be written to"):
        copying.begin(source, target)
    assert not target.cluster.is_initialized()
    source.registrations.register("a:3181", b"", read_only=True)
    whole_copy(source, target)
    target.registrations.register("a:3181", b"", read_only=True)
    with pytest.raises(IllegalOperation, match="bookie a:3181 of the target is running"):
        copying.begin(source, target)
    target.registrations.unregister("a:3181")
    target.ledgers.create(70, METADATA)
    with pytest.raises(IllegalOperation, match="ledger 70 is only in the target"):
        list(copying.copy(source, target))
    assert target.ledgers.read(70).value.ensemble_size == 1
    other = new_store("embedded")
    other.cluster.initialize()
    with pytest.raises(IllegalOperation, match="holds another cluster"):
        copying.begin(source, other)


@pytest.mark.parametrize(
    "kind",
    [
        "embedded",
        pytest.param("etcd", marks=pytest.mark.thorough),
        pytest.param("zookeeper", marks=pytest.mark.interop),
    ],
)
def test_ids_that_are_left(new_store: Callable[[str], MetadataDriver], kind: str) -> None:
    """New ids follow what was left, near by or far away, also for those who open the store later."""
    driver = new_store(kind)
    driver.cluster.initialize()
    assert driver.ledgers.last_id() == -1
    before = driver.ledgers.new_id()
    assert driver.ledgers.last_id() == before
    for last in (before, before - 1, before + 9, 5000, 1 << 33, (1 << 33) + 3, (1 << 57) + 1):
        driver.ledgers.leave_ids(last)
        assert driver.ledgers.last_id() >= last or driver.ledgers.new_id() > last
        new = driver.ledgers.new_id()
        assert new > last
        assert driver.ledgers.last_id() == new
