"""Metadata clusters of every kind: the same tests run on the embedded store, on a remote one, on etcd and on ZooKeeper.

A cluster is empty and initialized; `connect` opens a driver with a session of its own. The embedded kind has one
owner, the first that connects; the others reach it over gRPC, like other processes of the machine.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Protocol

import grpc
import pytest
from kazoo.client import KazooClient

from bookie.metadata import open_driver
from bookie.metadata.driver import MetadataDriver
from bookie.metadata.key_value.driver import KeyValueDriver
from bookie.metadata.key_value.embedded import EmbeddedStore
from bookie_admin.services.metadata_store import STREAMS_MAX, MetadataService
from tests.fixtures.etcd import EtcdCluster
from tests.fixtures.zookeeper import ZooKeeperServer

SESSION_TIMEOUT_MS = 6000


class Cluster(Protocol):
    """The interface of a kind that the contract tests use."""

    def connect(self, *, session_timeout_ms: int = SESSION_TIMEOUT_MS) -> MetadataDriver:
        """Return a started driver; the fixture stops it in the end."""
        ...


class ServedStore:
    """An embedded store behind a real gRPC server on loopback."""

    def __init__(self, store: EmbeddedStore) -> None:
        self.store = store
        self._service = MetadataService(store)
        self._pool = ThreadPoolExecutor(STREAMS_MAX + 8, thread_name_prefix="metadata-service")
        self._server = grpc.server(self._pool)
        self._service.add_to(self._server)
        self.port = self._server.add_insecure_port("127.0.0.1:0")
        self._server.start()

    @property
    def uri(self) -> str:
        return f"grpc://127.0.0.1:{self.port}"

    def stop(self) -> None:
        """End streams, calls and threads; the store stays open."""
        self._service.close()
        self._server.stop(grace=None).wait()
        self._pool.shutdown()


class KeyValueCluster:
    """Drivers on one embedded store: with `owner_first` the first one is its owner, and all others use gRPC."""

    def __init__(self, directory: Path, *, owner_first: bool) -> None:
        self.store = EmbeddedStore(directory)
        self._owner_next = owner_first
        self._drivers: list[MetadataDriver] = []
        self._owner = KeyValueDriver(self.store, session_timeout_s=SESSION_TIMEOUT_MS / 1000)
        self._owner.start()
        self._owner.cluster.initialize()
        self.served = ServedStore(self.store)

    def connect(self, *, session_timeout_ms: int = SESSION_TIMEOUT_MS) -> MetadataDriver:
        if self._owner_next:
            self._owner_next = False
            return self._owner
        driver = open_driver(self.served.uri, session_timeout_ms=session_timeout_ms)
        self._drivers.append(driver)
        driver.start()
        return driver

    def stop(self) -> None:
        """Stop everything, clients first."""
        for driver in self._drivers:
            driver.stop()
        self.served.stop()
        self._owner.stop()


class ZooKeeperCluster:
    """Drivers on one root of a ZooKeeper server."""

    def __init__(self, server: ZooKeeperServer) -> None:
        self.server = server
        self.root = server.new_root()
        self.uri = f"zk+hierarchical://{server.address}{self.root}"
        self._drivers: list[MetadataDriver] = []
        self.connect().cluster.initialize()

    def connect(self, *, session_timeout_ms: int = SESSION_TIMEOUT_MS) -> MetadataDriver:
        driver = open_driver(self.uri, session_timeout_ms=session_timeout_ms)
        self._drivers.append(driver)
        driver.start()
        return driver

    def children(self) -> list[str]:
        """Return the children of the ledgers root."""
        zookeeper = KazooClient(self.server.address)
        zookeeper.start()
        try:
            return list(zookeeper.get_children(self.root))
        finally:
            zookeeper.stop()
            zookeeper.close()

    def stop(self) -> None:
        """Stop all drivers."""
        for driver in self._drivers:
            driver.stop()


class EtcdScope:
    """Drivers on one scope of etcd."""

    def __init__(self, etcd: EtcdCluster) -> None:
        self.etcd, self.scope = etcd, etcd.new_scope()
        self.uri = f"etcd://{etcd.addresses}{self.scope}"
        self._drivers: list[MetadataDriver] = []
        self.connect().cluster.initialize()

    def connect(self, *, session_timeout_ms: int = SESSION_TIMEOUT_MS) -> MetadataDriver:
        driver = open_driver(self.uri, session_timeout_ms=session_timeout_ms)
        self._drivers.append(driver)
        driver.start()
        return driver

    def stop(self) -> None:
        """Stop all drivers."""
        for driver in self._drivers:
            driver.stop()


@pytest.fixture(
    params=[
        "embedded",
        "remote",
        pytest.param("etcd", marks=pytest.mark.thorough),
        pytest.param("zookeeper", marks=pytest.mark.interop),
    ]
)
def cluster(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Cluster]:
    """A new cluster of each kind."""
    made: KeyValueCluster | ZooKeeperCluster | EtcdScope
    if request.param == "zookeeper":
        made = ZooKeeperCluster(request.getfixturevalue("zookeeper"))
    elif request.param == "etcd":
        made = EtcdScope(request.getfixturevalue("etcd"))
    else:
        made = KeyValueCluster(tmp_path / "metadata", owner_first=request.param == "embedded")
    yield made
    made.stop()


@pytest.fixture
def zookeeper_cluster(zookeeper: ZooKeeperServer) -> Iterator[ZooKeeperCluster]:
    """A new cluster in ZooKeeper."""
    made = ZooKeeperCluster(zookeeper)
    yield made
    made.stop()


@pytest.fixture
def etcd_scope(etcd: EtcdCluster) -> Iterator[EtcdScope]:
    """A new cluster in etcd."""
    made = EtcdScope(etcd)
    yield made
    made.stop()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[EmbeddedStore]:
    """An open embedded store."""
    made = EmbeddedStore(tmp_path / "metadata")
    made.start()
    yield made
    made.stop()


@pytest.fixture
def serve() -> Iterator[Callable[[EmbeddedStore], ServedStore]]:
    """A function that serves stores over gRPC until the test ends."""
    served: list[ServedStore] = []

    def start(store: EmbeddedStore) -> ServedStore:
        served.append(ServedStore(store))
        return served[-1]

    yield start
    for one in served:
        one.stop()
