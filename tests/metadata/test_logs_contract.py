"""Logs are lists with many writers, and contain each batch once, on every metadata store."""

import random
from concurrent.futures import ThreadPoolExecutor

import pytest

from bookie.errors import IncorrectParameter, LogExists, MetadataVersionConflict, NoSuchLog
from bookie.metadata.changing_logs import append, forget, remove, replace_all, touch, update
from bookie.metadata.records.logs import Commit, Log
from tests.metadata.conftest import Cluster, ZooKeeperCluster
from tests.metadata.seen import Seen
from tests.metadata.test_driver_contract import METADATA

pytestmark = pytest.mark.leaks("gRPC keeps threads of its own for the life of the process")

NAMES = ("a", "a/b", "persistent://public/default/orders", ".", "..", "größe 1", "%2E", "~")


def test_a_log_lives(cluster: Cluster) -> None:
    """A log is created, read by another client, replaced by version and deleted; each stale version is refused."""
    ours, theirs = cluster.connect().logs, cluster.connect().logs
    with pytest.raises(NoSuchLog, match="'orders'"):
        ours.read("orders")
    created = ours.create("orders", Log((3, 1, 2)))
    assert theirs.read("orders") == created
    with pytest.raises(LogExists):
        theirs.create("orders", Log())
    changed = Log((3, 1, 2, 1 << 62), {"query": Commit(4, 1_700_000_000_000)}, settled=2)
    written = theirs.write("orders", changed, created.version)
    assert written.version > created.version
    assert ours.read("orders").value == changed
    with pytest.raises(MetadataVersionConflict):
        ours.write("orders", Log(), created.version)
    with pytest.raises(MetadataVersionConflict):
        ours.delete("orders", created.version)
    ours.delete("orders", written.version)
    with pytest.raises(NoSuchLog):
        theirs.delete("orders")
    with pytest.raises(NoSuchLog):
        theirs.write("orders", Log(), written.version)


def test_names_are_anything_readable(cluster: Cluster) -> None:
    """Slashes, dots and percent signs in a name are harmless, and a name is listed as it was given."""
    driver = cluster.connect()
    assert list(driver.logs.names()) == []
    for number, name in enumerate(NAMES):
        driver.logs.create(name, Log((number,)))
    assert [name for page in driver.logs.names() for name in page] == sorted(NAMES, key=str.encode)
    for number, name in enumerate(NAMES):
        assert driver.logs.read(name).value.ledgers == (number,)
    for name in ("", "a\nb", "é" * 101):
        with pytest.raises(IncorrectParameter, match="1 to 200 bytes"):
            driver.logs.read(name)


def test_logs_and_ledgers_do_not_meet(cluster: Cluster) -> None:
    """A list of ledgers has no log, and destroying the cluster destroys its logs."""
    driver = cluster.connect()
    driver.logs.create("00", Log((1,)))
    driver.ledgers.create(7, METADATA)
    assert [ledger for page in driver.ledgers.ranges() for ledger in page] == [7]
    driver.cluster.destroy()
    driver.cluster.initialize()
    assert list(driver.logs.names()) == []


def test_a_hundred_thousand_ledgers_fit(cluster: Cluster) -> None:
    """They fit whatever their ids, with a hundred writers in addition."""
    seeded_random = random.Random(8)
    ids = tuple(seeded_random.getrandbits(63) for _ in range(100_000))
    large = Log(ids, {f"query {number}": Commit(number, number << 40) for number in range(100)})
    logs = cluster.connect().logs
    logs.create("large", large)
    assert logs.read("large").value == large


def test_a_log_is_watched(cluster: Cluster) -> None:
    """A watcher gets the present state, each later one, and the deletion."""
    writer, reader = cluster.connect().logs, cluster.connect().logs
    seen = Seen()
    watch = reader.watch("watched", seen)
    seen.wait_equal(None)
    seen.wait_equal(writer.create("watched", Log((1,))))
    seen.wait_equal(append(writer, "watched", [2]))
    writer.delete("watched")
    seen.wait_equal(None)
    watch.close()


def test_batches_are_appended_once(cluster: Cluster) -> None:
    """A repeated or late batch changes nothing, and its writer sees which ledgers are not in the list."""
    logs = cluster.connect().logs
    assert append(logs, "log", [5, 3], ("query", 0)).value.ledgers == (5, 3)
    assert append(logs, "log", [6, 7], ("query", 0)).value.ledgers == (5, 3)
    assert append(logs, "log", [8], ("other", 0)).value.ledgers == (5, 3, 8)
    now = append(logs, "log", [9], ("query", 2))
    assert append(logs, "log", [10], ("query", 1)) == now
    assert append(logs, "log", [3, 9]) == now, "ledgers that are in the list stay where they are"
    replaced, dropped = replace_all(logs, "log", [9, 11], ("query", 3))
    assert (replaced.value.ledgers, dropped) == ((9, 11), (5, 3, 8))
    assert replace_all(logs, "log", [12], ("query", 3)) == (replaced, ())
    assert remove(logs, "log", {9}).value.ledgers == (11,)
    assert set(forget(logs, "log", "query").value.commits) == {"other"}
    before = logs.read("log")
    assert touch(logs, "log").value == before.value
    with pytest.raises(MetadataVersionConflict):
        logs.write("log", Log(), before.version)
    assert touch(logs, "new").value == Log()
    with pytest.raises(NoSuchLog):
        update(logs, "none", lambda log: log)
    with pytest.raises(IncorrectParameter, match="twice"):
        append(logs, "log", [13, 13])


def test_writers_at_the_same_time_lose_nothing(cluster: Cluster) -> None:
    """Several clients append to a new log: each ledger is in the list once, each writer's ledgers in order."""
    clients = [cluster.connect().logs for _ in range(3)]

    def write(number: int) -> None:
        for batch in range(8):
            append(clients[number], "shared", [number * 100 + batch], (f"writer {number}", batch))

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(write, range(3)))
    found = clients[0].read("shared").value
    assert sorted(found.ledgers) == [number * 100 + batch for number in range(3) for batch in range(8)]
    for number in range(3):
        assert [one % 100 for one in found.ledgers if one // 100 == number] == list(range(8))
        assert found.commits[f"writer {number}"].batch == 7


@pytest.mark.interop
def test_logs_stand_beside_the_ledgers(zookeeper_cluster: ZooKeeperCluster) -> None:
    """Apache BookKeeper's ledgers root gets no unknown child."""
    driver = zookeeper_cluster.connect()
    below = set(zookeeper_cluster.children())
    driver.logs.create("orders", Log((1,)))
    assert set(zookeeper_cluster.children()) == below
