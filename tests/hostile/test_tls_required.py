"""A bookie that serves nothing in clear, and one that accepts no login in clear.

Modules: server.gate, server.clear_auth.
"""

import re
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from bookie.auth.sasl import SaslClient, SaslServer
from bookie.auth.token import TokenClient, TokenServer
from bookie.pb import wire_pb2 as wire
from tests.fixtures.certificates import Authority, Party
from tests.hostile import v3, v3_frames
from tests.hostile.auth_frames import auth, log_in
from tests.hostile.local import LocalBookie, local_bookie
from tests.hostile.peer import Peer, add, batch, read
from tests.hostile.tls_peer import ACCEPTED, START_TLS, TlsPeer, client_context, settings_of
from tests.reference.wire_v2 import encode_request

OK, UNAUTHORIZED = 0, 102
CLEAR_BEHIND, IN_CLEAR, TOO_LATE = "turned_away_11", "turned_away_18", "turned_away_6"
TOKEN = b"a-token-of-enough-bytes"
USER, PASSWORD = "bookkeeper", "a password"
either_protocol = pytest.mark.parametrize("protocol", [2, 3])


@pytest.fixture(scope="module")
def ca(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """The certificate authority of all parties."""
    return Authority(tmp_path_factory.mktemp("ca"))


@pytest.fixture(scope="module")
def party(ca: Authority) -> Party:
    """The bookie's certificate."""
    return ca.issue("bookie", hosts=["127.0.0.1"])


@pytest.fixture(params=["everybody", "token"])
def bookie(request: pytest.FixtureRequest, tmp_path: Path, party: Party) -> Iterator[LocalBookie]:
    """A bookie that requires TLS, with and without a login."""
    provider = TokenServer((TOKEN,)) if request.param == "token" else None
    with local_bookie(tmp_path, provider=provider, tls=settings_of(party, required=True)) as bookie:
        yield bookie


def inside(bookie: LocalBookie, ca: Authority) -> Peer:
    """Return an encrypted connection that is logged in where that is required."""
    peer = TlsPeer(bookie.address, client_context(ca))
    if bookie.port.provider is not None:
        assert peer.ask(add(1, 0, b"x")).code == UNAUTHORIZED
        log_in(peer, 2, "token", TokenClient(TOKEN).session(""))
    return peer


@pytest.mark.parametrize("operation", sorted(set(wire.OperationType.values()) - {wire.START_TLS}))
def test_every_operation_of_v3_in_clear(bookie: LocalBookie, ca: Authority, operation: int) -> None:
    """S8: the response is EUA with a copy of the header, the connection is closed, and nothing is stored. After
    START_TLS everything is as usual.
    """
    before = bookie.stat(IN_CLEAR)
    with bookie.peer() as peer:
        asked = v3_frames.request(operation, txn=7, priority=2)
        assert v3.ask(peer, asked) == wire.Response(header=asked.header, status=wire.EUA)
        assert peer.closed()
    assert bookie.stat(IN_CLEAR) == before + 1
    with inside(bookie, ca) as peer:
        assert peer.ask(read(1, 0)).code != OK, "the add in clear was not taken"
        assert peer.ask(add(1, 0, b"x")).code == OK


@pytest.mark.parametrize(
    ("frame", "answered"),
    [
        (encode_request(add(1, 0, b"x")), True),
        (encode_request(read(1, 0)), True),
        (encode_request(batch(1, 0)), False),
        (auth(2, "token", TOKEN), False),
        (struct.pack(">i", 1 << 20), False),
    ],
    ids=["add", "read", "batch", "auth", "too long"],
)
def test_v2_in_clear(bookie: LocalBookie, frame: bytes, *, answered: bool) -> None:
    """S8: the response is EUA where V2 has a code, and the connection is closed, without waiting for a long frame."""
    with bookie.peer() as peer:
        peer.sock.sendall(frame)
        if answered:
            assert peer.answer().code == UNAUTHORIZED
        assert peer.closed()


def test_what_stands_behind_the_first_request(bookie: LocalBookie) -> None:
    """S8: there is one response, however many requests came."""
    with bookie.peer() as peer:
        peer.sock.sendall(encode_request(add(1, 0, b"x")) * 50)
        assert len(peer.take_all()) == len(encode_answer())


def encode_answer() -> bytes:
    """Return bytes of the length of any V2 add response."""
    return bytes(4 + 24)


@either_protocol
def test_a_login_in_clear_behind_start_tls(bookie: LocalBookie, protocol: int) -> None:
    """S8: it is in clear nevertheless, and the log says so."""
    before = bookie.stat(CLEAR_BEHIND)
    with bookie.peer() as peer:
        peer.sock.sendall(START_TLS + auth(protocol, "token", TOKEN))
        assert peer.take_all() in (b"", ACCEPTED)
    with bookie.peer() as peer:
        peer.sock.sendall(START_TLS)
        assert peer.take(len(ACCEPTED)) == ACCEPTED
        peer.sock.sendall(auth(protocol, "token", TOKEN))
        assert peer.closed()
    assert bookie.stat(CLEAR_BEHIND) == before + 2


def test_who_says_nothing_in_clear(tmp_path: Path, party: Party) -> None:
    """S8: it has as much time as for a login, even without authentication."""
    with local_bookie(tmp_path, tls=settings_of(party, required=True), unauthenticated_ms_max=500) as bookie:
        with bookie.peer() as peer:
            assert peer.closed()
        assert bookie.stat(TOO_LATE) == 1


@either_protocol
def test_the_switch_for_logins_in_clear(tmp_path: Path, ca: Authority, party: Party, protocol: int) -> None:
    """S8: with the option off, neither a message after START_TLS counts, nor a proof in clear before it."""
    provider = SaslServer({USER: PASSWORD}, re.compile(".*"))
    with local_bookie(tmp_path, provider=provider, tls=settings_of(party, clear_login=False)) as bookie:
        with bookie.peer() as peer:
            peer.sock.sendall(START_TLS + auth(protocol, "sasl", b""))
            assert peer.take_all() in (b"", ACCEPTED)
        assert bookie.stat(CLEAR_BEHIND) == 1
        with bookie.peer() as peer:
            log_in(peer, protocol, "sasl", SaslClient(USER, PASSWORD).session(""))
            assert peer.ask(add(1, 0, b"x")).code == OK, "in clear it counts"
        with bookie.peer() as peer:
            log_in(peer, 3, "sasl", SaslClient(USER, PASSWORD).session(""))
            v3.send(peer, v3_frames.request(wire.START_TLS))
            assert v3.answer(peer).status == wire.EOK
            peer.sock = client_context(ca).wrap_socket(peer.sock, server_hostname="127.0.0.1")
            assert v3.ask(peer, v3_frames.request(wire.ADD_ENTRY)).status == wire.EUA
            log_in(peer, 3, "sasl", SaslClient(USER, PASSWORD).session(""))
            assert v3.ask(peer, v3_frames.request(wire.ADD_ENTRY)).status == wire.EOK
