"""Fixtures of the interop tests: a cluster in ZooKeeper for each test, and one Java client process for all of them."""

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.fixtures.bookies import BookieProcess
from tests.fixtures.certificates import Authority
from tests.fixtures.java_peer import LINE, JavaPeer
from tests.fixtures.java_process import SMALL, JavaBookie, init_cluster
from tests.fixtures.ports import free_port
from tests.interop.driver import Answer, Driver
from tests.interop.guards import ROLES, bookie_keys, client_keys, jaas, jaas_options
from tests.interop.java_disks import Content, Ended, Running, fill, java_bookie
from tests.interop.targets import Start, Target

MakeJavaBookie = Callable[..., JavaBookie]
_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def java_driver(java_peer: JavaPeer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Driver]:
    """One Java client process, in which tests connect clients under names of their own."""
    driver = Driver(java_peer, tmp_path_factory.mktemp("java-driver") / "driver.log")
    driver.start()
    yield driver
    driver.stop()


@pytest.fixture(scope="session")
def java_as(java_peer: JavaPeer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Driver]]:
    """A maker of Java client processes that know a user by a password; there is one for each."""
    made: dict[str, Driver] = {}

    def driver(password: str) -> Driver:
        if password not in made:
            directory = tmp_path_factory.mktemp("java-as")
            options = jaas_options(jaas(directory, password=password))
            made[password] = Driver(java_peer, directory / "driver.log", options=options)
            made[password].start()
        return made[password]

    yield driver
    for one in made.values():
        one.stop()


@pytest.fixture
def java_bookie_at(java_peer: JavaPeer, tmp_path: Path) -> Iterator[MakeJavaBookie]:
    """A maker of started Java bookies, `java_bookie_at(uri, **settings)`; all are killed in the end."""
    made: list[JavaBookie] = []

    def make(uri: str, **settings: str) -> JavaBookie:
        bookie = JavaBookie(java_peer, tmp_path / f"java-bookie-{len(made)}", free_port(), uri, {**SMALL, **settings})
        made.append(bookie)
        bookie.start()
        return bookie

    yield make
    for bookie in made:
        bookie.kill()


def new_cluster(peer: JavaPeer, address: str, directory: Path) -> str:
    """Return the metadata service URI of a new cluster, laid out by upstream's own command."""
    uri = f"zk+hierarchical://{address}/cluster-{next(_numbers)}"
    init_cluster(peer, directory, uri)
    return uri


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Drop the tests that need a newer peer, and mark a Java client on Java bookies, where nothing of ours runs."""
    too_new = [item for item in items if (since := item.get_closest_marker("since")) and since.args > LINE]
    config.hook.pytest_deselected(items=too_new)
    items[:] = [item for item in items if item not in too_new]
    for item in items:
        params = getattr(getattr(item, "callspec", None), "params", {})
        java_bookies = "java" in (params.get("start_bookies"), params.get("cluster"))
        if java_bookies and {"client", "new_client"} & set(getattr(item, "fixturenames", ())):
            item.add_marker("upstream")


@pytest.fixture(scope="session")
def shared_cluster_uri(java_peer: JavaPeer, zookeeper: Any, tmp_path_factory: pytest.TempPathFactory) -> str:
    """One cluster for all tests that talk to bookies by address."""
    return new_cluster(java_peer, zookeeper.address, tmp_path_factory.mktemp("init"))


@pytest.fixture
def cluster_uri(request: pytest.FixtureRequest, java_peer: JavaPeer, zookeeper: Any, tmp_path: Path) -> str:
    """A cluster for the test. It is its own if it has a Java client, which must not find the bookies of other tests."""
    if "client" in request.fixturenames:
        return new_cluster(java_peer, zookeeper.address, tmp_path / "init")
    uri: str = request.getfixturevalue("shared_cluster_uri")
    return uri


@pytest.fixture(params=["java", "ours"])
def start_bookies(request: pytest.FixtureRequest, cluster_uri: str) -> Start:
    """Starts bookies: once Apache BookKeeper's, and once ours."""
    if request.param == "java":
        return java_starter(request.getfixturevalue("java_bookie_at"), cluster_uri)
    return our_starter(request, cluster_uri)


@pytest.fixture
def start_ours(request: pytest.FixtureRequest, cluster_uri: str) -> Start:
    """Starts bookies of ours."""
    return our_starter(request, cluster_uri)


@pytest.fixture
def start_java(java_bookie_at: MakeJavaBookie, cluster_uri: str) -> Start:
    """Starts bookies of Apache BookKeeper."""
    return java_starter(java_bookie_at, cluster_uri)


def java_starter(java_bookie_at: MakeJavaBookie, uri: str) -> Start:
    """Return a starter of Apache BookKeeper's bookies at `uri`."""

    def start(count: int = 1, **settings: str) -> list[Target]:
        return [java_bookie_at(uri, **settings) for _ in range(count)]

    return start


def our_starter(request: pytest.FixtureRequest, uri: str) -> Start:
    """Return a starter of our bookies at `uri`."""
    bookies = request.getfixturevalue("bookies")

    def start(count: int = 1, **settings: str) -> list[Target]:
        return list(bookies(count, metadataServiceUri=uri, **settings))

    return start


@dataclass(frozen=True, slots=True)
class Cluster:
    """Three bookies of one kind that stand for all tests of a module, their metadata service, and how to get in."""

    kind: str
    uri: str
    bookies: list[Target]
    settings: dict[str, str]
    """What a Java client needs to be let in."""


class Standing:
    """Bookies that stand until `end`, one for each combination of kind and settings that is asked for."""

    def __init__(self, peer: JavaPeer, directory: Path) -> None:
        self._peer = peer
        self._directory = directory
        self._running: dict[str, JavaBookie | BookieProcess] = {}

    def __call__(self, kind: str, uri: str, name: str = "", **settings: str) -> Target:
        """Return the bookie of that kind ("java" or "ours"), cluster, name and settings."""
        key = f"{kind}-{uri}-{name}-{settings}"
        if key not in self._running:
            directory = self._directory / f"{kind}-{len(self._running)}"
            made: JavaBookie | BookieProcess
            if kind == "java":
                made = JavaBookie(self._peer, directory, free_port(), uri, {**SMALL, **settings})
            else:
                made = BookieProcess(directory, uri, settings)
            made.start()
            self._running[key] = made
        return self._running[key]

    def end(self) -> None:
        """Kill all of them."""
        for bookie in self._running.values():
            bookie.kill()


@pytest.fixture(scope="module")
def standing(java_peer: JavaPeer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standing]:
    """Bookies for all tests of a module, which must then keep out of each other's ledgers."""
    standing = Standing(java_peer, tmp_path_factory.mktemp("standing"))
    yield standing
    standing.end()


@pytest.fixture(scope="module", params=["java", "ours"])
def cluster(
    request: pytest.FixtureRequest,
    java_peer: JavaPeer,
    zookeeper: Any,
    standing: Standing,
    tmp_path_factory: pytest.TempPathFactory,
) -> Cluster:
    """A cluster of its own with three bookies: Apache BookKeeper's, ours, or ours behind a guard (`guarded`)."""
    kind: str = request.param
    directory = tmp_path_factory.mktemp("cluster")
    uri = new_cluster(java_peer, zookeeper.address, directory / "init")
    keys, settings = {}, {}
    if "tls" in kind:
        ca = Authority(directory / "ca")
        keys, settings = bookie_keys(ca), client_keys(ca, unit="0:writer")
    if "roles" in kind:
        keys |= ROLES
    bookies = [standing("java" if kind == "java" else "ours", uri, str(number), **keys) for number in range(3)]
    return Cluster(kind, uri, bookies, settings)


OURS = ["ours", "ours, tls", "ours, tls, roles"]
guarded = pytest.mark.parametrize("cluster", ["java", *OURS], indirect=True, scope="module")
"""For a test with `cluster` that is to hold behind guards, too."""


class Client:
    """A Java client of its own in the shared process, connected to one cluster."""

    def __init__(self, driver: Driver, uri: str, **settings: Any) -> None:
        self.driver = driver
        self.name = f"client-{next(_numbers)}"
        self.call("connect", **{"uri": uri, "v2": True, "batch": True, **settings})

    def call(self, op: str, *, seconds: float = 120, **arguments: Any) -> Answer:
        """Run one operation of this client. Raises JavaError."""
        return self.driver.call(op, client=self.name, seconds=seconds, **arguments)


@pytest.fixture
def client(java_driver: Driver, cluster_uri: str) -> Iterator[Client]:
    """A Java client of the test's cluster, with V2 and batch reads on."""
    client = Client(java_driver, cluster_uri)
    yield client
    client.call("disconnect")


@pytest.fixture
def running() -> Iterator[Running]:
    """Bookies that are killed in the end."""
    made: Running = []
    yield made
    for bookie in made:
        bookie.kill()


@pytest.fixture
def ended(java_peer: JavaPeer, cluster_uri: str, client: Client, tmp_path: Path, running: Running) -> Ended:
    """A Java bookie of a kind that was filled, and ended in that way."""

    def make(kind: str, how: str, **settings: str) -> tuple[JavaBookie, Content]:
        java = java_bookie(java_peer, tmp_path / "bookie", cluster_uri, kind, **settings)
        running.append(java)
        java.start()
        content = Content(client, java.id)
        fill(content, java)
        if how == "stop":
            java.stop()
        else:
            java.kill()
        return java, content

    return make
