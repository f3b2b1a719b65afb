"""Roles in TLS certificates: a Java client at our bookie and at Java's, both with the very same keys.

One bookie of each kind stands for all tests of this file.
"""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.fixtures.certificates import Authority
from tests.fixtures.java_peer import JavaPeer
from tests.interop.conftest import Client, Standing, new_cluster
from tests.interop.driver import Driver
from tests.interop.guards import ROLES, bookie_keys, client_keys
from tests.interop.test_java_auth import life_of_a_ledger, nothing_is_added

pytestmark = pytest.mark.interop

KINDS = ["ours", pytest.param("java", marks=pytest.mark.upstream)]
LET_IN = [("0:writer", True), ("1:cluster;0:admin,reader", False)]
NOT_LET_IN = {"another role": "0:reader", "second role": "0:reader,writer", "no code": "writer", "no unit": ""}


@pytest.fixture(scope="module")
def ca(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """The certificate authority of bookies and clients."""
    return Authority(tmp_path_factory.mktemp("ca"))


@pytest.fixture(scope="module", params=KINDS)
def uri(
    request: pytest.FixtureRequest,
    java_peer: JavaPeer,
    zookeeper: Any,
    standing: Standing,
    ca: Authority,
    tmp_path_factory: pytest.TempPathFactory,
) -> str:
    """A cluster of one bookie that admits certain roles."""
    uri = new_cluster(java_peer, zookeeper.address, tmp_path_factory.mktemp("init"))
    standing(request.param, uri, **bookie_keys(ca), **ROLES)
    return uri


@pytest.fixture
def showing(java_driver: Driver, uri: str, ca: Authority) -> Iterator[Callable[..., Client]]:
    """Java clients whose certificates have this organizational unit."""
    made: list[Client] = []

    def connect(unit: str, *, v2: bool) -> Client:
        made.append(Client(java_driver, uri, v2=v2, settings=client_keys(ca, unit=unit)))
        return made[-1]

    yield connect
    for client in made:
        client.call("disconnect")


@pytest.mark.parametrize(("unit", "v2"), LET_IN)
def test_a_role_that_is_let_in(showing: Callable[..., Client], unit: str, *, v2: bool) -> None:
    """A client with the role goes through a ledger's life."""
    life_of_a_ledger(showing(unit, v2=v2))


@pytest.mark.parametrize("v2", [True, False], ids=["v2", "v3"])
@pytest.mark.parametrize("unit", NOT_LET_IN.values(), ids=NOT_LET_IN)
def test_a_role_that_is_not(showing: Callable[..., Client], unit: str, *, v2: bool) -> None:
    """The bookie trusts the client's certificate, but refuses what it asks."""
    nothing_is_added(showing(unit, v2=v2))
