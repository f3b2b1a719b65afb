"""B20: what the store says about a bookie soon equals the bookie's real mode, after anything that can go wrong."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from kazoo.client import KazooClient

from bookie.errors import BookieAlreadyRegistered, MetadataSessionLost, MetadataStoreError
from bookie.metadata import open_driver
from bookie.metadata.bookies.registration import BookieRegistration
from bookie.metadata.driver import MetadataDriver
from bookie.metadata.zookeeper.driver import ZooKeeperDriver
from tests.fixtures.frozen import freeze, thaw
from tests.fixtures.ports import free_port
from tests.fixtures.zookeeper import ZooKeeperServer
from tests.metadata.conftest import Cluster, ZooKeeperCluster
from tests.metadata.seen import Seen

pytestmark = pytest.mark.leaks("gRPC keeps threads of its own for the life of the process")

BOOKIE = "10.0.0.5:3181"
SOON_S = 60.0
ROOT = Path(__file__).resolve().parents[2]


class StoreProcess:
    """An embedded store in a process of its own."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.port = free_port()
        self.uri = f"grpc://127.0.0.1:{self.port}"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start or restart the process, and wait until it serves."""
        command = [sys.executable, "-m", "tests.metadata.serve_store", str(self.directory), str(self.port)]
        self.process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == b"serving\n"

    def stall(self, seconds: float) -> None:
        """Stop the process for a while, without ending a connection."""
        assert self.process is not None
        freeze(self.process.pid)
        threading.Event().wait(seconds)
        thaw(self.process.pid)

    def kill(self) -> None:
        """Kill the process with SIGKILL."""
        if self.process is not None:
            self.process.kill()
            self.process.communicate()
            self.process = None


@pytest.fixture
def store_process(tmp_path: Path) -> Iterator[StoreProcess]:
    """A running store in another process."""
    store = StoreProcess(tmp_path / "metadata")
    store.start()
    yield store
    store.kill()


def registration(driver: MetadataDriver, given_up: Seen, **settings: int) -> BookieRegistration:
    """Return a registration that checks often enough for a test."""
    return BookieRegistration(
        driver.registrations, BOOKIE, b"", on_give_up=given_up, check_s=0.2, backoff_max_s=0.2, **settings
    )


@pytest.mark.thorough
def test_a_store_that_stalls_ends_no_session(store_process: StoreProcess) -> None:
    """While the store stalls nobody can keep a session alive, so all sessions get their whole time again."""
    sessions = [open_driver(store_process.uri, session_timeout_ms=1000) for _ in range(2)]
    ends, interruptions = Seen(), Seen()
    for number, driver in enumerate(sessions):
        driver.start()
        driver.registrations.on_session_loss(lambda: ends(1))
        driver.bookies.on_interruption(lambda: interruptions(1))
        driver.registrations.register(f"b{number}:1", b"", read_only=False)
    seen = Seen()
    sessions[0].bookies.watch(seen, read_only=False)
    seen.wait_equal({"b0:1", "b1:1"})
    store_process.stall(3)
    interruptions.wait_for(lambda _: len(interruptions.values) >= 2, "of the interruption")
    assert sessions[0].bookies.present(read_only=False) == {"b0:1", "b1:1"}
    assert (ends.values, seen.values) == ([], [{"b0:1", "b1:1"}])
    for driver in sessions:
        driver.stop()


def test_a_restarted_store_is_an_interruption(store_process: StoreProcess) -> None:
    """Who watches bookies learns of the restart; their sessions are gone, and their registrations with them."""
    driver = open_driver(store_process.uri, session_timeout_ms=4000)
    driver.start()
    interruptions = Seen()
    driver.bookies.on_interruption(lambda: interruptions(1))
    store_process.kill()
    store_process.start()
    interruptions.wait_equal(1)
    driver.stop()


@pytest.mark.thorough
def test_a_reconnection_to_zookeeper_is_an_interruption(own_zookeeper: ZooKeeperServer) -> None:
    """Its server may have been away for others, too."""
    cluster = ZooKeeperCluster(own_zookeeper)
    driver, interruptions = cluster.connect(), Seen()
    driver.bookies.on_interruption(lambda: interruptions(1))
    own_zookeeper.kill()
    own_zookeeper.start()
    interruptions.wait_equal(1)
    cluster.stop()


def test_the_mode_follows_the_bookie(cluster: Cluster) -> None:
    """B20: others see start, read-only, writable and stop."""
    driver, client = cluster.connect(), cluster.connect()
    given_up = Seen()
    bookie = registration(driver, given_up)
    writable, read_only = Seen(), Seen()
    client.bookies.watch(writable, read_only=False)
    client.bookies.watch(read_only, read_only=True)
    bookie.start(read_only=True)
    assert client.bookies.present(read_only=True) == {BOOKIE}
    bookie.set_read_only(False)
    assert bookie.wait_settled(SOON_S)
    assert client.bookies.present(read_only=False) == {BOOKIE}
    read_only.wait_equal(frozenset())
    bookie.set_read_only(True)
    read_only.wait_equal(frozenset({BOOKIE}))
    writable.wait_equal(frozenset())
    bookie.stop()
    bookie.stop()
    read_only.wait_equal(frozenset())
    assert not given_up.values


def test_a_lost_registration_comes_back(cluster: Cluster) -> None:
    """B20: if another client deletes the node or key, the next check restores it."""
    driver, client = cluster.connect(), cluster.connect()
    bookie = registration(driver, Seen())
    bookie.start(read_only=False)
    writable = Seen()
    client.bookies.watch(writable, read_only=False)
    writable.wait_equal(frozenset({BOOKIE}))
    driver.registrations.unregister(BOOKIE)
    writable.wait_for(lambda now: now == {BOOKIE} and frozenset() in writable.values, "that it went and came back")
    bookie.stop()


def test_a_second_process_with_the_id_does_not_start(cluster: Cluster) -> None:
    """A copy of a bookie is refused at start, with the exit code for a failed registration."""
    bookie = registration(cluster.connect(), Seen())
    bookie.start(read_only=False)
    copy = registration(cluster.connect(session_timeout_ms=1000), Seen())
    with pytest.raises(BookieAlreadyRegistered) as refusal:
        copy.start(read_only=False)
    assert refusal.value.exit_code == 4
    bookie.stop()


def kill_session(driver: MetadataDriver, address: str) -> None:
    """Let ZooKeeper end the driver's session, which any client with its id and password may close."""
    assert isinstance(driver, ZooKeeperDriver)
    twin = KazooClient(hosts=address, client_id=driver._session.client.client_id)
    twin.start()
    twin.stop()
    twin.close()


@pytest.mark.interop
def test_an_expired_zookeeper_session_is_replaced(zookeeper_cluster: ZooKeeperCluster) -> None:
    """B20: after its session expired, the bookie registers under a new one, in its present mode."""
    driver, client = zookeeper_cluster.connect(), zookeeper_cluster.connect()
    given_up, lost = Seen(), Seen()
    bookie = registration(driver, given_up)
    bookie.start(read_only=True)
    driver.registrations.on_session_loss(lost)
    ids_followed, seen = Seen(), Seen()
    driver.bookies.watch(ids_followed, read_only=False)
    client.bookies.watch(seen, read_only=True)
    seen.wait_equal(frozenset({BOOKIE}))
    kill_session(driver, zookeeper_cluster.server.address)
    lost.wait_for(lambda _: True, "that the session is lost")
    seen.wait_for(lambda now: now == {BOOKIE}, "that the bookie is back")
    assert driver.registrations.is_registered(BOOKIE, read_only=True) or bookie.wait_settled(SOON_S)
    bookie.set_read_only(False)
    ids_followed.wait_equal(frozenset({BOOKIE}))  # the watch from before works in the new session
    bookie.stop()
    assert not given_up.values


@pytest.mark.interop
def test_a_frozen_zookeeper_is_waited_for(own_zookeeper: ZooKeeperServer) -> None:
    """B20: if the server is frozen beyond the session timeout, requests fail in time, and later all is as before."""
    made = ZooKeeperCluster(own_zookeeper)
    driver = made.connect(session_timeout_ms=2000)
    given_up = Seen()
    bookie = registration(driver, given_up)
    bookie.start(read_only=False)
    own_zookeeper.freeze()
    try:
        with pytest.raises(MetadataStoreError, match="did not answer within 2 s: check metadataServiceUri"):
            driver.ledgers.new_id()
        bookie.set_read_only(True)
        assert not bookie.wait_settled(0.5)
    finally:
        own_zookeeper.thaw()
    assert bookie.wait_settled(SOON_S)
    assert driver.registrations.is_registered(BOOKIE, read_only=True)
    bookie.stop()
    made.stop()
    assert not given_up.values


@pytest.mark.interop
@pytest.mark.leaks("the socket thread of kazoo cannot be told to stop while the server takes nothing")
def test_a_bookie_stops_without_its_store(own_zookeeper: ZooKeeperServer) -> None:
    """A frozen server neither delays a stop nor makes it fail; later it drops the bookie at the session timeout."""
    made = ZooKeeperCluster(own_zookeeper)
    driver = made.connect(session_timeout_ms=2000)
    bookie = registration(driver, Seen())
    bookie.start(read_only=False)
    own_zookeeper.freeze()
    try:
        bookie.set_read_only(True)
        bookie.stop()
        driver.stop()
    finally:
        own_zookeeper.thaw()
    seen = Seen()
    made.connect(session_timeout_ms=10_000).bookies.watch(seen, read_only=False)
    seen.wait_equal(frozenset())
    made.stop()


@pytest.mark.interop
def test_a_restarted_zookeeper_finds_us_again(own_zookeeper: ZooKeeperServer) -> None:
    """B20: each time the server is killed and restarted, the bookie is registered as it should be."""
    made = ZooKeeperCluster(own_zookeeper)
    given_up = Seen()
    bookie = registration(made.connect(session_timeout_ms=4000), given_up)
    bookie.start(read_only=False)
    for number in range(3):
        own_zookeeper.kill()
        bookie.set_read_only(number % 2 == 0)
        own_zookeeper.start()
        assert bookie.wait_settled(SOON_S)
        assert made.connect().bookies.present(read_only=number % 2 == 0) == {BOOKIE}
    bookie.stop()
    made.stop()
    assert not given_up.values


def test_a_restarted_store_process_finds_us_again(store_process: StoreProcess) -> None:
    """B20: if the process with the embedded store is killed, sessions end, ledgers stay, and bookies register again."""
    driver = open_driver(store_process.uri, session_timeout_ms=2000)
    driver.start()
    given_up, seen = Seen(), Seen()
    bookie = registration(driver, given_up)
    bookie.start(read_only=False)
    driver.bookies.watch(seen, read_only=False)
    seen.wait_equal(frozenset({BOOKIE}))
    ledger_id = driver.ledgers.new_id()
    instance_id = driver.cluster.instance_id()

    store_process.kill()
    store_process.start()
    bookie.set_read_only(True)
    assert bookie.wait_settled(SOON_S)
    seen.wait_equal(frozenset())
    assert driver.bookies.present(read_only=True) == {BOOKIE}
    assert driver.ledgers.new_id() == ledger_id + 1
    assert driver.cluster.instance_id() == instance_id
    bookie.stop()
    driver.stop()
    assert not given_up.values


@pytest.mark.thorough
def test_giving_up_ends_with_the_reason(store_process: StoreProcess) -> None:
    """B20: after the allowed retries the bookie is notified once, with an error that has the right exit code."""
    driver = open_driver(store_process.uri, session_timeout_ms=1000)
    driver.start()
    given_up = Seen()
    bookie = registration(driver, given_up, retries_max=2)
    bookie.start(read_only=False)
    store_process.kill()
    error = given_up.wait_for(lambda _: True, "the error")
    assert isinstance(error, MetadataSessionLost)
    assert error.exit_code == 3
    assert BOOKIE in str(error)
    assert len(given_up.values) == 1
    bookie.stop()
    driver.stop()


def test_two_modes_asked_at_once_settle_on_the_last(cluster: Cluster) -> None:
    """Whatever threads request in whatever order, the store ends in the mode of the last call."""
    driver = cluster.connect()
    bookie = registration(driver, Seen())
    bookie.start(read_only=False)

    def ask() -> None:
        for number in range(50):
            bookie.set_read_only(number % 3 == 0)

    askers = [threading.Thread(target=ask) for _ in range(3)]
    for asker in askers:
        asker.start()
    for asker in askers:
        asker.join()
    bookie.set_read_only(True)
    assert bookie.wait_settled(SOON_S)
    assert driver.registrations.is_registered(BOOKIE, read_only=True)
    bookie.stop()
