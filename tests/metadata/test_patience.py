"""How long calls wait for a metadata store, and what of it is left once the process is about to end."""

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from bookie.errors import BookKeeperError
from bookie.metadata import open_driver
from bookie.metadata.driver import MetadataDriver
from bookie.metadata.patience import Patience, at_most, carried
from tests.fixtures.etcd import EtcdCluster
from tests.fixtures.zookeeper import ZooKeeperServer

LONG_MS = 60_000
SOON_S = 20.0


def test_patience() -> None:
    """A call has its whole time until somebody hurries, then less, and nothing once one call has waited in vain."""
    patience, now = Patience(10), time.monotonic()
    assert 9 < patience.left(now) <= 10
    assert 19 < patience.left(now, 20) <= 20
    assert patience.left(now - 11) <= 0
    assert patience.left(now) > 9  # as long as nobody hurries, one call says nothing about the next one
    with at_most(2):
        assert 1 < patience.left(now) <= 2
        with at_most(5):
            assert 1 < patience.left(now) <= 2
    assert patience.left(now) > 8
    patience.hurry(3)
    patience.hurry(300)
    assert 2 < patience.left(now - 5) <= 3
    assert 0 < patience.left(now - 8) <= 2
    assert 2 < patience.left(time.monotonic()) <= 3
    assert patience.left(now - 11) <= 0
    assert patience.left(time.monotonic()) == 0


def test_the_patience_of_a_thread_is_carried_to_another() -> None:
    """A call that another thread makes on behalf of this one waits no longer than this one would."""
    patience = Patience(10)

    def left() -> float:
        return patience.left(time.monotonic())

    with at_most(2):
        limited = carried(left)
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(limited).result() <= 2
        assert pool.submit(carried(left)).result() > 8


def test_what_a_call_says_that_gives_up() -> None:
    """It says how long it has waited, if it has."""
    patience, now = Patience(10), time.monotonic()
    assert str(patience.no_answer("store", now - 2, "look")) == "store did not answer within 2 s: look"
    assert str(patience.no_answer("store", now - 20, "look")) == "store did not answer within 10 s: look"
    assert str(patience.no_answer("store", time.monotonic(), "look")) == "store did not answer in time: look"
    patience.hurry(0)
    assert patience.left(now) == 0
    text = "store did not answer an earlier call, so this one did not wait: look"
    assert str(patience.no_answer("store", time.monotonic(), "look")) == text


ETCD = pytest.param("etcd", marks=pytest.mark.thorough)
ZOOKEEPER = pytest.param("zookeeper", marks=pytest.mark.interop)


@pytest.fixture(params=[ETCD, ZOOKEEPER])
def silent(request: pytest.FixtureRequest) -> Iterator[tuple[MetadataDriver, Callable[[], None]]]:
    """A driver, and a function that makes its store silent."""
    if request.param == "etcd":
        etcd: EtcdCluster = request.getfixturevalue("own_etcd")
        uri, freeze, thaw = f"etcd://{etcd.addresses}/ledgers", etcd.members[0].freeze, etcd.members[0].thaw
    else:
        zookeeper: ZooKeeperServer = request.getfixturevalue("own_zookeeper")
        uri, freeze, thaw = f"zk+hierarchical://{zookeeper.address}/ledgers", zookeeper.freeze, zookeeper.thaw
    driver = open_driver(uri, session_timeout_ms=LONG_MS)
    driver.start()
    driver.cluster.initialize()
    yield driver, freeze
    thaw()
    driver.stop()


@pytest.mark.parametrize("hurried", [False, True])
def test_a_call_that_waits_ends_with_the_driver(
    silent: tuple[MetadataDriver, Callable[[], None]], hurried: bool
) -> None:
    """It fails soon when the driver is hurried or stopped, and the stop of the driver does not wait for the store."""
    driver, freeze = silent
    failed: list[BookKeeperError] = []
    looked = threading.Event()

    def look() -> None:
        try:
            while True:
                driver.cluster.is_initialized()
                looked.set()
        except BookKeeperError as error:
            failed.append(error)

    caller = threading.Thread(target=look, daemon=True)
    caller.start()
    assert looked.wait(60)
    freeze()
    begun = time.monotonic()
    if hurried:
        driver.hurry(0.5)
        caller.join(60)
        assert "did not answer" in str(failed[0])
        with pytest.raises(BookKeeperError, match="did not answer"):
            driver.cluster.is_initialized()
    driver.stop()
    caller.join(60)
    assert failed
    assert time.monotonic() - begun < SOON_S
