"""What only ZooKeeper has: Apache BookKeeper's tree byte for byte, its own tools on it, and the assignment of ids."""

import queue
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from kazoo.client import KazooClient, KazooState

from bookie.errors import ClusterNotInitialized, ConfigurationError, MetadataStoreError, NoSuchLedgerMetadata
from bookie.metadata import open_driver
from bookie.metadata.bookies.service_info import BookieServiceInfo, bookie_endpoint
from bookie.metadata.driver import MetadataDriver
from bookie.metadata.records.ledger_codec import serialize_ledger
from bookie.metadata.records.ledger_metadata import DigestType, LedgerMetadata, LedgerState, Segment
from bookie.metadata.zookeeper.session import ZooKeeperSession
from bookie.storage.cookies import make_cookie
from tests.fixtures.java_peer import JavaPeer
from tests.fixtures.java_process import JavaBookie, init_cluster
from tests.fixtures.lossy_proxy import lossy_proxy
from tests.fixtures.ports import free_port
from tests.fixtures.zookeeper import ZooKeeperServer
from tests.metadata.conftest import ZooKeeperCluster

pytestmark = pytest.mark.interop

METADATA = LedgerMetadata(
    ensemble_size=1,
    write_quorum=1,
    ack_quorum=1,
    segments=(Segment(0, ("10.0.0.5:3181",)),),
    digest_type=DigestType.CRC32C,
    password=b"secret",
    custom={"app": b"test"},
)
HYBRID = b"2\norg.apache.bookkeeper.meta.HierarchicalLedgerManagerFactory:1"


@pytest.fixture
def raw(zookeeper: ZooKeeperServer) -> Iterator[KazooClient]:
    """A plain ZooKeeper client, to inspect and change nodes."""
    client = KazooClient(hosts=zookeeper.address)
    client.start()
    yield client
    client.stop()
    client.close()


def test_the_tree_of_a_new_cluster(zookeeper_cluster: ZooKeeperCluster, raw: KazooClient) -> None:
    """There are the root, available, readonly, INSTANCEID and LAYOUT, and nothing else."""
    root = zookeeper_cluster.root
    assert sorted(raw.get_children(root)) == ["INSTANCEID", "LAYOUT", "available"]
    assert raw.get_children(f"{root}/available") == ["readonly"]
    assert raw.get(f"{root}/LAYOUT")[0] == HYBRID
    assert len(raw.get(f"{root}/INSTANCEID")[0]) == 36
    assert raw.get(f"{root}/available")[0] == b""


def test_nodes_stand_where_java_looks(zookeeper_cluster: ZooKeeperCluster, raw: KazooClient) -> None:
    """Ledgers, registrations and cookies have Java's paths; empty parents of a deleted ledger are deleted."""
    driver, root = zookeeper_cluster.connect(), zookeeper_cluster.root
    driver.ledgers.create(1, METADATA)
    driver.ledgers.create(1 << 31, METADATA)
    assert raw.exists(f"{root}/00/0000/L0001")
    assert raw.exists(f"{root}/000/0000/0021/4748/L3648")
    driver.registrations.register("bk:1", b"info", read_only=False)
    data, stat = raw.get(f"{root}/available/bk:1")
    assert (data, stat.ephemeralOwner != 0) == (b"info", True)
    driver.registrations.register("bk:1", b"info", read_only=True)
    assert raw.get_children(f"{root}/available") == ["readonly"]
    assert raw.get_children(f"{root}/available/readonly") == ["bk:1"]
    driver.cookies.write("bk:1", b"text", None)
    assert raw.get(f"{root}/cookies/bk:1")[0] == b"text"
    driver.ledgers.delete(1)
    assert not raw.exists(f"{root}/00")
    assert raw.exists(f"{root}/000")


def test_foreign_nodes_are_no_ledgers(zookeeper_cluster: ZooKeeperCluster, raw: KazooClient) -> None:
    """B12: other nodes, at any level, neither end the list of ledgers nor appear in it."""
    driver, root = zookeeper_cluster.connect(), zookeeper_cluster.root
    for ledger_id in (1, 2, 99_999):
        driver.ledgers.create(ledger_id, METADATA)
    for path in ("zzz", "0a/0000/L0001", "00/xyz", "00/0000/M0007", "00/0000/L00071", "underreplication/ledgers"):
        raw.create(f"{root}/{path}", makepath=True)
    assert [ledger_id for part in driver.ledgers.ranges() for ledger_id in part] == [1, 2, 99_999]


def test_a_layout_that_contradicts_is_refused(zookeeper_cluster: ZooKeeperCluster) -> None:
    """A layout in the URI must be the cluster's; without one, the cluster's is used."""
    address, root = zookeeper_cluster.server.address, zookeeper_cluster.root
    wrong = open_driver(f"zk+flat://{address}{root}")
    with pytest.raises(ConfigurationError, match=r"asks for layout flat, but .*LAYOUT says hierarchical"):
        wrong.start()
    wrong.stop()
    right = open_driver(f"zk://{address}{root}")
    right.start()
    assert right.cluster.is_initialized()
    right.stop()


@pytest.mark.parametrize("kind", ["longhierarchical", "legacyhierarchical", "flat"])
def test_the_first_client_stores_the_layout(zookeeper: ZooKeeperServer, raw: KazooClient, kind: str) -> None:
    """In a cluster without LAYOUT, as Pulsar creates it, the first client writes it; every layout works."""
    root = zookeeper.new_root()
    raw.create(root)
    raw.create(f"{root}/INSTANCEID", b"theirs")
    driver = open_driver(f"zk+{kind}://{zookeeper.address}{root}")
    driver.start()
    assert raw.get(f"{root}/LAYOUT")[0].startswith(b"2\norg.apache.bookkeeper.meta.")
    assert driver.cluster.instance_id() == "theirs"
    assert driver.bookies.present(read_only=True) == frozenset()
    ids = [driver.ledgers.new_id(), 7_000, 70_001]
    for ledger_id in ids:
        driver.ledgers.create(ledger_id, METADATA)
    assert [ledger_id for part in driver.ledgers.ranges() for ledger_id in part] == ids
    driver.registrations.register("bk:1", b"", read_only=True)
    assert driver.bookies.present(read_only=True) == {"bk:1"}
    driver.stop()


def test_no_cluster_is_not_an_empty_one(zookeeper: ZooKeeperServer) -> None:
    """B12, B16: a root that does not exist has no instance id and no list of ledgers; the error has the remedy."""
    driver = open_driver(f"zk://{zookeeper.address}{zookeeper.new_root()}")
    driver.start()
    assert not driver.cluster.is_initialized()
    with pytest.raises(ClusterNotInitialized, match="bookie-server --init-cluster"):
        driver.cluster.instance_id()
    with pytest.raises(ClusterNotInitialized):
        list(driver.ledgers.ranges())
    driver.stop()


def test_a_parent_that_is_missing_is_named(zookeeper: ZooKeeperServer) -> None:
    """Only the last component of the root is created."""
    driver = open_driver(f"zk://{zookeeper.address}/not-there{zookeeper.new_root()}")
    driver.start()
    with pytest.raises(MetadataStoreError, match="create /not-there first"):
        driver.cluster.initialize()
    driver.stop()


def test_nobody_at_the_address() -> None:
    """The error has the server and the setting, and comes within the session timeout."""
    driver = open_driver(f"zk://127.0.0.1:{free_port()}/ledgers", session_timeout_ms=500)
    with pytest.raises(MetadataStoreError, match=r"did not answer within 0\.5 s: check metadataServiceUri"):
        driver.start()
    driver.stop()


def test_a_lost_connection_ends_no_session(own_zookeeper: ZooKeeperServer) -> None:
    """The owner of a node is known while the server is away, or our own node would count as another's."""
    session = ZooKeeperSession((own_zookeeper.address,), timeout_s=5, secure=False)
    away = threading.Event()
    session.start()
    known = session.id
    session.client.add_listener(lambda state: away.set() if state == KazooState.SUSPENDED else None)
    assert known
    own_zookeeper.kill()
    assert away.wait(60)
    assert session.id == known
    own_zookeeper.start()
    assert session.read("/") is not None
    assert session.id == known
    session.stop()
    assert session.id == 0


def test_a_ledger_is_deleted_though_its_parents_stay(own_zookeeper: ZooKeeperServer) -> None:
    """If the store fails after the deletion, remaining empty parents do not make it fail."""
    cluster = ZooKeeperCluster(own_zookeeper)

    def go_away() -> bool:
        own_zookeeper.kill()
        return True

    with lossy_proxy(own_zookeeper.port) as proxy:
        driver = open_driver(f"zk+hierarchical://127.0.0.1:{proxy.port}{cluster.root}", session_timeout_ms=2000)
        driver.start()
        driver.ledgers.create(123_456_789, METADATA)
        proxy.lose_answer_to(b"/01/2345" + b"\xff" * 4, go_away)  # the parent, at any version
        driver.ledgers.delete(123_456_789)
        assert proxy.losses == 1
        own_zookeeper.start()
        with pytest.raises(NoSuchLedgerMetadata):
            cluster.connect().ledgers.read(123_456_789)
        driver.stop()
    cluster.stop()


def test_several_hosts(zookeeper_cluster: ZooKeeperCluster) -> None:
    """A dead server in the list does not matter, with either separator."""
    address, root = zookeeper_cluster.server.address, zookeeper_cluster.root
    for separator in (";", ","):
        driver = open_driver(f"zk://127.0.0.1:{free_port()}{separator}{address}{root}")
        driver.start()
        assert driver.cluster.is_initialized()
        driver.stop()


def test_ids_go_long_for_good(zookeeper_cluster: ZooKeeperCluster, raw: KazooClient) -> None:
    """If `idgen-long` exists, every client uses 63-bit ids; an overflow of the low part increments the high one."""
    driver, root = zookeeper_cluster.connect(), zookeeper_cluster.root
    short = driver.ledgers.new_id()
    assert 0 <= short < 100
    assert raw.get_children(f"{root}/idgen") == []
    raw.create(f"{root}/idgen-long")
    first, second = driver.ledgers.new_id(), zookeeper_cluster.connect().ledgers.new_id()
    assert first == 1 << 32
    assert second == first + 1
    assert raw.get_children(f"{root}/idgen-long") == ["HOB-0000000001"]
    raw.create(f"{root}/idgen-long/HOB-0000000007")
    assert driver.ledgers.new_id() == 7 << 32


def test_secure_nodes_belong_to_their_creator(zookeeper: ZooKeeperServer) -> None:
    """Without authentication ZooKeeper refuses creator-only nodes, which shows that the setting reaches the server."""
    driver = open_driver(f"zk://{zookeeper.address}{zookeeper.new_root()}", secure=True)
    driver.start()
    with pytest.raises(MetadataStoreError, match="InvalidACL"):
        driver.cluster.initialize()
    driver.stop()


def test_java_reads_what_we_write(zookeeper_cluster: ZooKeeperCluster, java_peer: JavaPeer, tmp_path: Path) -> None:
    """Apache BookKeeper's shell finds our cluster and our registrations."""
    driver = zookeeper_cluster.connect()
    info = BookieServiceInfo((bookie_endpoint("10.0.0.5", 3181),)).to_bytes()
    driver.registrations.register("10.0.0.5:3181", info, read_only=False)
    driver.registrations.register("10.0.0.6:3181", info, read_only=True)
    conf = JavaBookie(java_peer, tmp_path / "java", free_port(), zookeeper_cluster.uri, {}).write_conf()
    assert "10.0.0.5" in java_peer.shell(conf, "listbookies", "-rw")
    assert "10.0.0.6" in java_peer.shell(conf, "listbookies", "-ro")
    assert str(driver.cluster.instance_id()) in java_peer.shell(conf, "whatisinstanceid")


def test_java_writes_ledgers_as_we_do(zookeeper_cluster: ZooKeeperCluster, java_peer: JavaPeer, tmp_path: Path) -> None:
    """Apache BookKeeper reads our bytes and writes the same bytes again, in each version."""
    driver = zookeeper_cluster.connect()
    conf = JavaBookie(java_peer, tmp_path / "java", free_port(), zookeeper_cluster.uri, {}).write_conf()
    three = replace(METADATA, password=b"sec\1\xffret", custom={"app": b"t\0est"})
    closed = LedgerMetadata(
        ensemble_size=2,
        write_quorum=2,
        ack_quorum=2,
        state=LedgerState.CLOSED,
        length=50,
        last_entry=5,
        segments=(Segment(0, ("a:1", "b:1")), Segment(3, ("a:1", "c:1"))),
        format_version=1,
    )
    for ledger_id, metadata in enumerate((closed, replace(three, format_version=2), three), start=1):
        created = driver.ledgers.create(ledger_id, metadata)
        file = tmp_path / f"ledger-{ledger_id}"
        java_peer.shell(conf, "ledgermetadata", "-ledgerid", str(ledger_id), "-dumptofile", str(file))
        assert file.read_bytes() == serialize_ledger(created.value)


def test_java_writes_cookies_as_we_do(zookeeper_cluster: ZooKeeperCluster, java_peer: JavaPeer, tmp_path: Path) -> None:
    """Apache BookKeeper's `cookie_generate` writes the same bytes for the same directories, with escaped characters."""
    conf = JavaBookie(java_peer, tmp_path / "java", free_port(), zookeeper_cluster.uri, {}).write_conf()
    file = tmp_path / "cookie"
    command = ["-j", "/j1,/j2", "-l", "/l1,/l2", "-ix", '/i"1,/ü\\2', "-i", "instance", "-o", str(file), "bk:3181"]
    java_peer.shell(conf, "cookie_generate", *command)
    ours = make_cookie(
        "bk:3181",
        journals=[Path("/j1"), Path("/j2")],
        ledgers=[Path("/l1"), Path("/l2")],
        indexes=[Path('/i"1'), Path("/ü\\2")],
        instance_id="instance",
    )
    assert file.read_bytes() == ours.to_bytes()


def test_we_read_what_java_writes(zookeeper: ZooKeeperServer, java_peer: JavaPeer, tmp_path: Path) -> None:
    """We read a cluster that Apache BookKeeper's `initnewcluster` made."""
    uri = f"zk+hierarchical://{zookeeper.address}{zookeeper.new_root()}"
    init_cluster(java_peer, tmp_path / "init", uri)
    driver: MetadataDriver = open_driver(uri)
    driver.start()
    assert driver.cluster.is_initialized()
    assert len(driver.cluster.instance_id() or "") == 36
    assert driver.bookies.present(read_only=False) == frozenset()
    driver.stop()


def test_watches_of_a_ledger_that_ended_leave_one_function_behind(zookeeper_cluster: ZooKeeperCluster) -> None:
    """However often a ledger is watched, ZooKeeper's client keeps one function for it, and all watches work."""
    reader = zookeeper_cluster.connect()
    reader.ledgers.create(11, METADATA)
    for _ in range(20):
        changed = threading.Event()
        watch = reader.ledgers.watch(11, lambda _, changed=changed: changed.set())  # type: ignore[misc]
        assert changed.wait(60)
        watch.close()
    assert [len(kept) for kept in _functions(reader).values()] == [1]
    versions: queue.Queue[int] = queue.Queue()
    for _ in range(2):
        reader.ledgers.watch(11, lambda found: versions.put(found.version if found else -1))
    assert {versions.get(timeout=60) for _ in range(2)} == {0}
    reader.ledgers.write(11, replace(METADATA, state=LedgerState.IN_RECOVERY), 0)
    assert [versions.get(timeout=60) for _ in range(2)] == [1, 1]


def _functions(driver: MetadataDriver) -> dict[str, set[object]]:
    """Return what ZooKeeper's client calls when the node of a ledger changes."""
    watchers = driver._session.client._data_watchers  # type: ignore[attr-defined]
    return {path: kept for path, kept in watchers.items() if "L00" in path and kept}
