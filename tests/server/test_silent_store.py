"""A stop while the metadata store is silent: the bookie flushes what it holds, and does not wait long for the store."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Protocol

import pytest

from bookie.errors import MetadataStoreError
from bookie.metadata import open_driver
from tests.fixtures.bookies import BookieProcess
from tests.fixtures.etcd import EtcdCluster
from tests.fixtures.zookeeper import ZooKeeperServer
from tests.server.test_lifecycle import add, dirty

Bookies = Callable[..., list[BookieProcess]]
STOP_S_MAX = 8.0
"""The stop takes about 3 s, of 30 that it may take; the machine may be busy."""


class Store(Protocol):
    """A metadata store in a process of its own, which keeps its connections while it is frozen."""

    def freeze(self) -> None: ...
    def thaw(self) -> None: ...


@pytest.fixture(
    params=[
        "remote",
        pytest.param("etcd", marks=pytest.mark.thorough),
        pytest.param("zookeeper", marks=pytest.mark.interop),
    ]
)
def place(request: pytest.FixtureRequest, new_bookies: Bookies) -> Iterator[tuple[Store, str]]:
    """A store of each kind, and its URI."""
    store: Store
    if request.param == "etcd":
        etcd: EtcdCluster = request.getfixturevalue("own_etcd")
        store, uri = etcd.members[0], f"etcd://{etcd.addresses}/ledgers"
    elif request.param == "zookeeper":
        zookeeper: ZooKeeperServer = request.getfixturevalue("own_zookeeper")
        store, uri = zookeeper, f"zk+hierarchical://{zookeeper.address}/ledgers"
    else:
        (owner,) = new_bookies()
        store, uri = owner.start(), f"grpc://{owner.admin}"
    if request.param != "remote":
        driver = open_driver(uri)
        driver.start()
        driver.cluster.initialize()
        driver.stop()
    yield store, uri
    store.thaw()


def await_failure(bookie: BookieProcess) -> None:
    """Wait until the bookie has not been able to check its registration."""
    paused, deadline = threading.Event(), time.monotonic() + 120
    while "registration failed" not in bookie.log_text():
        assert time.monotonic() < deadline
        paused.wait(0.2)


@pytest.mark.parametrize("waited", [False, True])
def test_a_stop_does_not_wait_for_a_silent_store(place: tuple[Store, str], new_bookies: Bookies, waited: bool) -> None:
    """It ends cleanly, soon, and with everything flushed, whether calls to the store were waiting before or not."""
    store, uri = place
    (bookie,) = new_bookies(metadataServiceUri=uri, autoRecoveryDaemonEnabled="true")
    bookie.start()
    with socket.create_connection(bookie.address) as connection:
        assert add(connection, 1, 0, b"x") == 0
        store.freeze()
        if waited:
            await_failure(bookie)  # by now, a call that keeps the session alive waits, too
        begun = time.monotonic()
        assert bookie.stop() == 0
        took = time.monotonic() - begun
    assert not dirty(bookie)
    assert took < STOP_S_MAX, bookie.log_text()[-4000:]
    log = bookie.log_text()
    assert "Traceback" not in log
    assert "before some of its threads" not in log


def test_a_call_that_does_not_wait_says_so(place: tuple[Store, str]) -> None:
    """Once a hurried call had no answer, further ones fail at once, with a sentence that says why."""
    store, uri = place
    driver = open_driver(uri)
    driver.start()
    try:
        store.freeze()
        driver.hurry(0.5)
        with pytest.raises(MetadataStoreError, match=r"did not answer within \d(\.\d)? s: check metadataServiceUri"):
            driver.ledgers.new_id()
        with pytest.raises(
            MetadataStoreError, match="did not answer an earlier call, so this one did not wait: check metadata"
        ):
            driver.ledgers.new_id()
    finally:
        driver.stop()
        store.thaw()
