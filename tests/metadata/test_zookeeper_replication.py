"""Marks, locks and votes in ZooKeeper have Apache BookKeeper's bytes, and its own tools read and write ours."""

from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import pytest
from kazoo.client import KazooClient

from bookie.errors import MetadataSerializationError, MetadataStoreError
from bookie.metadata.records.replication import Check, Mark
from tests.fixtures.java_peer import JavaPeer
from tests.fixtures.java_process import JavaBookie
from tests.fixtures.ports import free_port
from tests.fixtures.zookeeper import ZooKeeperServer
from tests.metadata.conftest import ZooKeeperCluster
from tests.metadata.seen import Seen

pytestmark = pytest.mark.interop

ignore: Callable[[], None] = lambda: None  # noqa: E731 - the callback is not used


@pytest.fixture
def raw(zookeeper: ZooKeeperServer) -> Iterator[KazooClient]:
    """A plain ZooKeeper client, to inspect and change nodes."""
    client = KazooClient(hosts=zookeeper.address)
    client.start()
    yield client
    client.stop()
    client.close()


def test_nodes_stand_where_java_looks(zookeeper_cluster: ZooKeeperCluster, raw: KazooClient) -> None:
    """Paths and texts are the worked examples; empty parents of a finished ledger are deleted, others stay."""
    driver, base = zookeeper_cluster.connect(), f"{zookeeper_cluster.root}/underreplication"
    replication = driver.replication
    replication.mark(1_234_567_890, ["bk3:3181", "bk4:3181"], 1_760_000_000_000)
    assert raw.get(f"{base}/LAYOUT")[0] == b'type: "BASIC"\nversion: 1\n'
    mark = f"{base}/ledgers/0000/0000/4996/02d2/urL1234567890"
    assert raw.get(mark)[0] == b'replica: "bk3:3181"\nreplica: "bk4:3181"\nctime: 1760000000000\n'
    claim = replication.claim("bk1:3181", Random(1), ignore)
    assert claim is not None
    data, stat = raw.get(f"{base}/locks/urL1234567890")
    assert (data, stat.ephemeralOwner != 0) == (b'bookieId: "bk1:3181"\n', True)
    replication.mark(1, [], None)
    replication.mark(123_456_789_012_345, [], None)
    assert raw.exists(f"{base}/ledgers/0000/0000/0000/0001/urL0000000001")
    assert raw.exists(f"{base}/ledgers/0000/7048/860d/df79/urL123456789012345")
    assert replication.finish(claim)
    assert sorted(raw.get_children(f"{base}/ledgers/0000")) == ["0000", "7048"]
    assert raw.get_children(f"{base}/ledgers/0000/0000") == ["0000"]

    replication.set_lost_bookie_delay_s(90)
    assert raw.get(f"{base}/lostBookieRecoveryDelay")[0] == b"90"
    replication.set_last_check_ms(Check.ALL_LEDGERS, 300)
    assert raw.get(f"{base}/checkallledgersctime")[0] == b"\x08\xac\x02"
    replication.enable(enabled=False)
    assert raw.get(f"{base}/disable")[0] == b""
    elected = Seen()
    driver.election.stand("bk1:3181", elected)
    elected.wait_equal(True)
    assert raw.get(f"{base}/auditorelection")[0] == b'bookieId: "bk1:3181"\n'
    assert raw.get_children(f"{base}/auditorelection") == ["V_0000000000"]


def test_a_lock_that_could_not_be_released_goes_before_the_next_claim(own_zookeeper: ZooKeeperServer) -> None:
    """If the server was away for longer than a request waits, the lock would exist as long as the session."""
    cluster = ZooKeeperCluster(own_zookeeper)
    driver = cluster.connect(session_timeout_ms=3000)
    driver.replication.mark(7, ["a:1"], 1)
    claim = driver.replication.claim("us", Random(1), ignore)
    assert claim is not None
    lock = f"{cluster.root}/underreplication/locks/urL0000000007"

    def owner() -> int:
        client = KazooClient(hosts=own_zookeeper.address)
        client.start()
        try:
            return int(client.exists(lock).ephemeralOwner)
        finally:
            client.stop()
            client.close()

    before = owner()
    own_zookeeper.kill()
    with pytest.raises(MetadataStoreError):
        driver.replication.release(claim)
    own_zookeeper.start()
    again = driver.replication.claim("us", Random(1), ignore)
    assert again is not None
    assert owner() == before, "the session ended, and the lock with it"
    assert driver.replication.holds(again)
    cluster.stop()


def test_another_layout_is_refused(zookeeper_cluster: ZooKeeperCluster, raw: KazooClient) -> None:
    """Nothing is marked in a tree with an unknown layout."""
    driver, base = zookeeper_cluster.connect(), f"{zookeeper_cluster.root}/underreplication"
    raw.create(f"{base}/LAYOUT", b'type: "OTHER"\nversion: 1\n', makepath=True)
    with pytest.raises(MetadataSerializationError, match="is OTHER:1; only BASIC:1 is supported"):
        driver.replication.mark(1, ["a:1"], 1)


def test_java_tools_and_ours(zookeeper_cluster: ZooKeeperCluster, java_peer: JavaPeer, tmp_path: Path) -> None:
    """Apache BookKeeper's shell lists our marks, and we read the delay that it sets."""
    driver = zookeeper_cluster.connect()
    conf = JavaBookie(java_peer, tmp_path / "java", free_port(), zookeeper_cluster.uri, {}).write_conf()
    driver.replication.mark(77, ["10.0.0.5:3181"], 1_760_000_000_000)
    listed = java_peer.shell(conf, "listunderreplicated", "-pmr")
    assert "77" in listed
    assert "10.0.0.5:3181" in listed
    java_peer.shell(conf, "lostbookierecoverydelay", "-s", "33")
    assert driver.replication.lost_bookie_delay_s() == 33
    assert driver.replication.marked(77) == Mark(77, ("10.0.0.5:3181",), 1_760_000_000_000)
