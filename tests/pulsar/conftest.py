"""What tests on a Pulsar broker ask for, or a skip that says what is missing."""

import itertools
from collections.abc import Iterator
from typing import Any

import pytest

from tests.fixtures import pulsar as fixture
from tests.fixtures.java_peer import JavaPeer, JavaUnavailable
from tests.fixtures.zookeeper import ZooKeeperServer
from tests.pulsar.world import Pulsar, world_in

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def pulsar_peer() -> JavaPeer:
    """Apache Pulsar's jars and a Java to run them."""
    try:
        return fixture.find()
    except JavaUnavailable as reason:
        pytest.skip(str(reason))


@pytest.fixture(scope="module")
def world(
    request: pytest.FixtureRequest,
    pulsar_peer: JavaPeer,
    zookeeper: ZooKeeperServer,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Pulsar]:
    """A broker on our bookies, set up as the module's WORLD says."""
    with world_in(pulsar_peer, zookeeper, tmp_path_factory.mktemp("pulsar"), **request.module.WORLD) as world:
        yield world


@pytest.fixture
def connected(world: Pulsar) -> Iterator[Any]:
    """Pulsar's client, connected to the broker of the module's world."""
    pulsar = pytest.importorskip("pulsar", reason="pulsar-client is not installed (make pulsar)")
    client = pulsar.Client(world.broker.url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Warn))
    yield client
    client.close()


@pytest.fixture
def topic(world: Pulsar) -> str:
    """A topic of the test's own. A subscription that nobody reads, `held`, keeps its ledgers from being trimmed."""
    name = f"public/default/topic-{next(_numbers)}"
    world.broker.admin("PUT", f"persistent/{name}")
    world.broker.admin("PUT", f"persistent/{name}/subscription/held", "earliest")
    return name
