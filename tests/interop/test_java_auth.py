"""SASL DIGEST-MD5 in clear and inside TLS: the Java client at our bookies, and our client's provider at Java's.

Java takes its users from the JAAS file that the system property `java.security.auth.login.config` names, so each side
that logs in as somebody is a process of its own.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from bookie.auth.provider import ClientSession
from bookie.auth.sasl import SaslClient
from bookie.client import Channel, ChannelV3, Security, Tls
from bookie.client.bookies import BookieClient, MetadataStore
from bookie.client.bookies.connect import Connector
from bookie.client.config import ClientConfig
from bookie.errors import BookieUnavailable
from bookie.metadata import open_driver
from tests.client.bookies.senders import sealed
from tests.fixtures.bookies import BookieProcess
from tests.fixtures.certificates import Authority
from tests.fixtures.java_peer import QUICK, JavaPeer
from tests.fixtures.java_process import SMALL, JavaBookie
from tests.fixtures.ports import free_port
from tests.hostile.auth_frames import EUA, ask, log_in
from tests.hostile.peer import Peer, add, read
from tests.interop.conftest import Client, new_cluster
from tests.interop.driver import UNAUTHORIZED, Answer, Driver
from tests.interop.guards import (
    PASSWORD,
    SASL,
    SASL_CLIENT,
    USER,
    bookie_keys,
    client_keys,
    jaas,
    jaas_options,
)
from tests.interop.test_bookie_client import life

pytestmark = [
    pytest.mark.interop,
    pytest.mark.leaks("a Java process for each password serves the whole file"),
]

StartOurs = Callable[..., list[BookieProcess]]
NOT_ENOUGH_BOOKIES, NO_SUCH_LEDGER, HANDLE_NOT_AVAILABLE = -6, -7, -8
ENTRIES = 500
CONNECTS_MAX = 30
"""How often a client may begin again whose connections fail by chance."""
REFUSED_S = 60.0
SILENCE_S = 3.0
"""How long our client waits for a bookie that says nothing, as Java's to a wrong password."""


@pytest.fixture
def uri(java_peer: JavaPeer, zookeeper: Any, tmp_path: Path) -> str:
    """A cluster without other bookies."""
    return new_cluster(java_peer, zookeeper.address, tmp_path / "init")


@pytest.fixture
def ours(uri: str, bookies: StartOurs, tmp_path: Path) -> StartOurs:
    """Starts bookies of ours that know the user."""

    def start(count: int = 1, **settings: str) -> list[BookieProcess]:
        given = {"bookieAuthProviderFactoryClass": SASL, "saslJaasConfigFile": str(jaas(tmp_path)), **settings}
        return bookies(count, metadataServiceUri=uri, **given)

    return start


def write(client: Client, ensemble: int) -> tuple[Answer, Answer]:
    """Create a ledger and add to it; return both answers."""
    writer = client.call("create", e=ensemble, w=ensemble, a=ensemble, password="p")
    return writer, client.call("add", handle=writer["handle"], n=ENTRIES, size=300)


def life_of_a_ledger(client: Client, ensemble: int = 1, *, attempts: int = 1) -> None:
    """Create a ledger, add to it, read it and recover it. If the client cannot connect, try again with another one."""
    writer, added = write(client, ensemble)
    while added["added"] < ENTRIES and attempts > 1:
        assert added["error"]["code"] in {NOT_ENOUGH_BOOKIES, HANDLE_NOT_AVAILABLE}, (added, client.driver.log_end())
        writer, added = write(client, ensemble)
        attempts -= 1
    assert added["added"] == ENTRIES, (added, client.driver.log_end())
    assert client.call("read", handle=writer["handle"], first=0, last=499, size=300)["wrong"] == 0
    reader = client.call("open", ledger=writer["ledger"], recovery=True, password="p")
    assert reader["lac"] == 499


def nothing_is_added(client: Client) -> None:
    """Check that the ledger is made, which needs no bookie, and that its entries are refused."""
    writer = client.call("create", password="p")
    added = client.call("add", handle=writer["handle"], n=3, size=300)
    assert added["added"] == 0
    assert added["error"]["code"] in {UNAUTHORIZED, NOT_ENOUGH_BOOKIES, HANDLE_NOT_AVAILABLE}


def until_refused(target: BookieProcess, client: Client) -> None:
    """Check that the client cannot write, and that the log says once a second who was turned away, and why.

    In V2 a client may take the answer to START_TLS for another one and give up before it logs in. Then it tries
    again.
    """
    deadline = time.monotonic() + REFUSED_S
    nothing_is_added(client)
    while "not authenticated: the user or the password is wrong" not in target.log_text():
        assert time.monotonic() < deadline, target.log_text()[-4000:]
        nothing_is_added(client)
    client.call("disconnect")


@pytest.mark.parametrize("v2", [True, False])
def test_a_java_client_logs_in_and_works(
    ours: StartOurs, java_as: Callable[[str], Driver], uri: str, *, v2: bool
) -> None:
    """It does so with Java's own provider, in either protocol, and the log has neither user's password."""
    targets = ours(2)
    client = Client(java_as(PASSWORD), uri, v2=v2, settings=SASL_CLIENT)
    life_of_a_ledger(client, 2)
    client.call("disconnect")
    for target in targets:
        reported = target.log_text()
        assert f"principal={USER}" in reported
        assert "Pässwört" not in reported


@pytest.mark.parametrize("v2", [True, False])
def test_a_java_client_with_a_wrong_password(
    ours: StartOurs, java_as: Callable[[str], Driver], uri: str, *, v2: bool
) -> None:
    """It cannot write, and the bookie says why in its log."""
    (target,) = ours(1)
    client = Client(java_as("wrong"), uri, v2=v2, settings=SASL_CLIENT)
    until_refused(target, client)


@pytest.mark.parametrize("v2", [True, False])
def test_a_java_client_that_does_not_log_in(ours: StartOurs, java_driver: Driver, uri: str, *, v2: bool) -> None:
    """A Java client that does not log in cannot write."""
    ours(1)
    client = Client(java_driver, uri, v2=v2)
    nothing_is_added(client)
    client.call("disconnect")


@pytest.fixture
def ca(tmp_path: Path) -> Authority:
    """The certificate authority of bookies and clients."""
    return Authority(tmp_path / "ca")


@pytest.mark.parametrize("v2", [True, False])
def test_a_java_client_logs_in_inside_tls(
    ours: StartOurs, java_as: Callable[[str], Driver], uri: str, ca: Authority, *, v2: bool
) -> None:
    """Some of its messages come in clear around START_TLS. It is let in all the same, and works.

    In V2 a connection fails if an answer to its login comes before the one to START_TLS, which the client then takes
    for V2. It sends the two in either order, from two threads. A user, too, can only try again.
    """
    targets = ours(2, **bookie_keys(ca))
    client = Client(java_as(PASSWORD), uri, v2=v2, settings={**SASL_CLIENT, **client_keys(ca)})
    life_of_a_ledger(client, 2, attempts=CONNECTS_MAX if v2 else 1)
    client.call("disconnect")
    for target in targets:
        assert f"principal={USER}" in target.log_text()


def test_java_clients_that_log_in_while_they_ask_for_encryption(
    ours: StartOurs, java_as: Callable[[str], Driver], ca: Authority
) -> None:
    """Which of the two comes first varies between connections, and all of them get in.

    This is not so in V2: after an answer in V2 that client takes the one to START_TLS for V2 as well, and connects
    anew.
    """
    (target,) = ours(1, **bookie_keys(ca))
    driver, settings = java_as(PASSWORD), {**SASL_CLIENT, **client_keys(ca)}
    for _ in range(40):
        bookie = f"127.0.0.1:{target.port}"
        read = driver.call("raw_read", bookie=bookie, ledger=1, entry=0, v2=False, settings=settings)
        assert read["code"] == NO_SUCH_LEDGER
        driver.call("raw_disconnect", v2=False, settings=settings)


@pytest.mark.parametrize("v2", [True, False])
def test_a_java_client_with_a_wrong_password_inside_tls(
    ours: StartOurs, java_as: Callable[[str], Driver], uri: str, ca: Authority, *, v2: bool
) -> None:
    """A certificate that the bookie trusts does not help it."""
    (target,) = ours(1, **bookie_keys(ca))
    client = Client(java_as("wrong"), uri, v2=v2, settings={**SASL_CLIENT, **client_keys(ca)})
    until_refused(target, client)


@pytest.fixture
def java_bookie(java_peer: JavaPeer, uri: str, tmp_path: Path) -> Iterator[Callable[..., JavaBookie]]:
    """Starts a bookie of Apache BookKeeper that knows the user."""
    options = (*QUICK, *jaas_options(jaas(tmp_path)))
    with contextlib.ExitStack() as stack:

        def start(**settings: str) -> JavaBookie:
            given = {**SMALL, "bookieAuthProviderFactoryClass": SASL, **settings}
            bookie = JavaBookie(java_peer, tmp_path / "java-bookie", free_port(), uri, given, options=options)
            stack.callback(bookie.kill)
            bookie.start()
            return bookie

        yield start


def session(password: str = PASSWORD) -> ClientSession:
    """Make our side of the conversation."""
    return SaslClient(USER, password).session("127.0.0.1")


def test_our_provider_logs_in_at_a_java_bookie(java_bookie: Callable[..., JavaBookie]) -> None:
    """Our client logs in with either protocol, after the server has proven itself. Other requests are refused."""
    address = ("127.0.0.1", java_bookie().port)
    for protocol in (2, 3):
        with Peer(address) as peer:
            log_in(peer, protocol, "sasl", session())
            if protocol == 2:
                assert peer.ask(add(7, 0, b"x")).code == 0
    with Peer(address) as peer:
        assert peer.ask(read(7, 0)).code == 102
        assert ask(peer, 2, "sasl", b"").payload.startswith(b"realm=")
    with Peer(address) as peer:
        assert ask(peer, 3, "token", b"").status == EUA


def test_our_clients_log_in_at_a_java_bookie_inside_tls(
    java_bookie: Callable[..., JavaBookie], uri: str, ca: Authority
) -> None:
    """The asyncio client and the channels log in in both protocols. With a wrong password nothing is served."""
    bookie = java_bookie(**bookie_keys(ca))
    party = ca.issue("client")
    tls = Tls(ca.certificate, party.certificate, party.key)

    async def lives() -> None:
        store = await MetadataStore.open(open_driver(uri))
        try:
            for v2 in (True, False):
                config = ClientConfig(use_v2_wire_protocol=v2, read_timeout_s=60, add_timeout_s=60)
                known = Connector(60, tls, SaslClient(USER, PASSWORD))
                async with BookieClient(config, store.info, connector=known) as client:
                    await life(client, bookie.id, 3_100_000 + 10 * v2, v2=v2)
                stranger = Connector(SILENCE_S, tls, SaslClient(USER, "wrong"))
                async with BookieClient(config, store.info, connector=stranger) as client:
                    with pytest.raises(BookieUnavailable):
                        await client.read(bookie.id, 3_100_000, 0)
        finally:
            await store.close()

    asyncio.run(lives())
    for kind in (Channel, ChannelV3):
        known = Security(encrypt=tls, auth=SaslClient(USER, PASSWORD))
        with kind.connect("127.0.0.1", bookie.port, security=known) as channel:
            assert channel.read(3_100_010, 17) == sealed(3_100_010, 17, b"17".ljust(100, b"."))
