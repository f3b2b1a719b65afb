"""Authentication after START_TLS, by the certificate alone, or by messages inside the encrypted connection.

Modules: server.gate, server.upgrade.
"""

import logging
import re
from pathlib import Path

import pytest

from bookie.auth.certificate import server
from bookie.auth.provider import ServerProvider
from bookie.auth.sasl import SaslClient, SaslServer
from bookie.auth.settings import AuthSettings
from bookie.auth.token import TokenClient, TokenServer
from tests.fixtures.certificates import Authority
from tests.hostile.auth_frames import auth, log_in, receive, said
from tests.hostile.local import local_bookie
from tests.hostile.peer import Peer, add, batch, read
from tests.hostile.tls_peer import TlsPeer, client_context, settings_of
from tests.reference.wire_v2 import encode_request

OK, UNAUTHORIZED = 0, 102
TOKEN = b"a-token-of-enough-bytes"


@pytest.fixture(scope="module")
def ca(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """The certificate authority of all parties."""
    return Authority(tmp_path_factory.mktemp("ca"))


def test_the_role_of_the_certificate_lets_in(tmp_path: Path, ca: Authority, caplog: pytest.LogCaptureFixture) -> None:
    """Requests right after the handshake wait for the decision; with a wrong role each is refused."""
    bookie_party = ca.issue("bookie", hosts=["127.0.0.1"])
    provider = server(AuthSettings(authorized_roles="writer"))
    tls = settings_of(bookie_party, trust=ca.certificate)
    with local_bookie(tmp_path, provider=provider, tls=tls) as bookie:
        for number in range(8):
            writer = ca.issue(f"writer-{number}", unit="0:writer,other;1:cluster")
            with TlsPeer(bookie.address, client_context(ca, writer)) as peer:
                peer.sock.sendall(b"".join(encode_request(add(number, entry, b"x" * 200)) for entry in range(20)))
                assert {peer.answer().code for _ in range(20)} == {OK}
        reader = ca.issue("reader", unit="0:reader")
        with TlsPeer(bookie.address, client_context(ca, reader)) as peer:
            assert peer.ask(add(1, 99, b"x")).code == UNAUTHORIZED
            assert peer.ask(read(1, 0)).code == UNAUTHORIZED
            peer.send(batch(1, 0))
            assert peer.closed()
        with Peer(bookie.address) as plain:
            assert plain.ask(read(1, 0)).code == UNAUTHORIZED
    assert any("neither the role nor a name" in record.__dict__.get("reason", "") for record in caplog.records)


@pytest.mark.parametrize(
    ("provider", "plugin", "client"),
    [
        (TokenServer((TOKEN,)), "token", TokenClient(TOKEN)),
        (SaslServer({"me": "p"}, re.compile(".*")), "sasl", SaslClient("me", "p")),
    ],
    ids=["token", "sasl"],
)
def test_logging_in_under_tls(
    tmp_path: Path, ca: Authority, provider: ServerProvider, plugin: str, client: TokenClient | SaslClient
) -> None:
    """Encryption alone authenticates nobody; the same messages as without TLS do."""
    tls = settings_of(ca.issue("bookie", hosts=["127.0.0.1"]))
    with local_bookie(tmp_path, provider=provider, tls=tls) as bookie:
        with TlsPeer(bookie.address, client_context(ca)) as peer:
            assert peer.ask(read(1, 0)).code == UNAUTHORIZED
            log_in(peer, 2, plugin, client.session("127.0.0.1"))
            assert peer.ask(add(1, 0, b"x")).code == OK
        assert bookie.stat("auth_sessions") <= 1


def test_frames_behind_the_token_under_tls(tmp_path: Path, ca: Authority) -> None:
    """In one record or several, frames wait for the decision, and none is lost."""
    tls = settings_of(ca.issue("bookie", hosts=["127.0.0.1"]))
    with local_bookie(tmp_path, provider=TokenServer((TOKEN,)), tls=tls) as bookie:
        requests = b"".join(encode_request(add(3, entry, b"x" * 3000)) for entry in range(60))
        with TlsPeer(bookie.address, client_context(ca)) as peer:
            peer.sock.sendall(auth(2, "token", TOKEN) + requests)
            assert said(2, receive(peer)).plugin == "token"
            assert {peer.answer().code for _ in range(60)} == {OK}
        with TlsPeer(bookie.address, client_context(ca)) as peer:
            peer.sock.sendall(auth(2, "token", b"wrong") + requests[:1000])
            assert peer.closed()


def test_certificates_are_not_logged(tmp_path: Path, ca: Authority, caplog: pytest.LogCaptureFixture) -> None:
    """The log contains the role of accepted clients, and no other name of a certificate."""
    caplog.set_level(logging.DEBUG)
    tls = settings_of(ca.issue("bookie", hosts=["127.0.0.1"]), trust=ca.certificate)
    with local_bookie(tmp_path, provider=server(AuthSettings(authorized_roles="writer")), tls=tls) as bookie:
        for unit in ("0:writer", "0:marker-role"):
            with TlsPeer(bookie.address, client_context(ca, ca.issue("marker-name", unit=unit))) as peer:
                peer.ask(read(1, 0))
    reported = "\n".join(f"{record.getMessage()} {record.__dict__}" for record in caplog.records)
    assert "'principal': 'writer'" in reported
    assert "marker" not in reported
