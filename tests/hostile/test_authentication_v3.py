"""V3 on a bookie with authentication: every operation before and after it, and the responses to AUTH itself.

Modules: server.gate, server.policy.
"""

import re
from collections.abc import Iterator

import pytest

from bookie.auth.sasl import SaslClient, SaslServer
from bookie.auth.token import TokenClient, TokenServer
from bookie.client import BookieChannel, Channel, ChannelV3, Digest, Security
from bookie.errors import BookKeeperError
from bookie.pb import wire_pb2 as wire
from tests.fixtures.certificates import Authority
from tests.hostile import v3, v3_frames
from tests.hostile.auth_frames import auth as v2_frame
from tests.hostile.auth_frames import log_in
from tests.hostile.local import LocalBookie, local_bookie
from tests.hostile.peer import Peer, add, read
from tests.hostile.tls_peer import TlsPeer, client_context, settings_of

TOKEN = b"a-token-of-enough-bytes"
OPERATIONS = sorted(wire.OperationType.values())
pytestmark = pytest.mark.leaks("one bookie serves the whole file, and opens logs as it goes")


@pytest.fixture(scope="module")
def bookie(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalBookie]:
    """A bookie that requires the token and has no TLS."""
    with local_bookie(tmp_path_factory.mktemp("bookie"), provider=TokenServer((TOKEN,))) as bookie:
        yield bookie


@pytest.fixture(scope="module")
def ca(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """The bookie's certificate authority."""
    return Authority(tmp_path_factory.mktemp("ca"))


@pytest.fixture(scope="module")
def tls_bookie(tmp_path_factory: pytest.TempPathFactory, ca: Authority) -> Iterator[LocalBookie]:
    """A bookie that requires the token and has TLS."""
    tls = settings_of(ca.issue("bookie", hosts=["127.0.0.1"]))
    with local_bookie(tmp_path_factory.mktemp("tls"), provider=TokenServer((TOKEN,)), tls=tls) as bookie:
        yield bookie


@pytest.fixture
def peer(bookie: LocalBookie) -> Iterator[Peer]:
    """A connection that is not authenticated."""
    with bookie.peer() as peer:
        yield peer


@pytest.fixture(params=["plain", "tls"])
def either_peer(request: pytest.FixtureRequest, ca: Authority) -> Iterator[Peer]:
    """A connection that is not authenticated, in clear and encrypted."""
    if request.param == "plain":
        yield request.getfixturevalue("peer")
        return
    with TlsPeer(request.getfixturevalue("tls_bookie").address, client_context(ca)) as peer:
        yield peer


def auth(plugin: str, payload: bytes, **more: int) -> wire.Request:
    """Return an AUTH request."""
    return v3_frames.request(wire.AUTH, authRequest=wire.AuthMessage(authPluginName=plugin, payload=payload), **more)


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("version", [wire.VERSION_TWO, wire.VERSION_THREE])
def test_every_operation_before(either_peer: Peer, operation: int, version: int) -> None:
    """The response is a copy of the header with EUA, and the connection stays; only START_TLS is processed."""
    asked = v3_frames.request(operation, txn=2**63 + 5, priority=7, version=version)
    answer = v3.ask(either_peer, asked)
    refused = operation != wire.START_TLS
    assert answer == wire.Response(header=asked.header, status=wire.EUA if refused else wire.EBADREQ)
    assert v3.ask(either_peer, v3_frames.request(wire.READ_LAC)).status == wire.EUA


def test_encrypted_after_logging_in(tls_bookie: LocalBookie, ca: Authority) -> None:
    """With the token in clear and START_TLS right after it, both are answered, but TLS requires the token again."""
    with tls_bookie.peer() as peer:
        v3.send(peer, auth("token", TOKEN), v3_frames.request(wire.START_TLS))
        assert [v3.answer(peer).status for _ in range(2)] == [wire.EOK, wire.EOK]
        peer.sock = client_context(ca).wrap_socket(peer.sock, server_hostname="127.0.0.1")
        assert v3.ask(peer, v3_frames.request(wire.ADD_ENTRY)).status == wire.EUA
        assert v3.ask(peer, auth("token", TOKEN)).status == wire.EOK
        assert v3.ask(peer, v3_frames.request(wire.ADD_ENTRY)).status == wire.EOK


def test_requests_without_their_part(peer: Peer) -> None:
    """AUTH and START_TLS without their message are refused like others."""
    for operation in (wire.AUTH, wire.START_TLS, wire.ADD_ENTRY):
        bare = wire.Request(header=v3_frames.request(operation, txn=3).header)
        assert v3.ask(peer, bare) == wire.Response(header=bare.header, status=wire.EUA)


def test_in_with_the_token(bookie: LocalBookie) -> None:
    """The response copies the header; then everything is served, and AUTH is answered as without authentication."""
    with bookie.peer() as peer:
        asked = auth("token", TOKEN, txn=9, priority=100)
        answer = v3.ask(peer, asked)
        assert (answer.header, answer.status) == (asked.header, wire.EOK)
        assert answer.authResponse == wire.AuthMessage(authPluginName="token", payload=b"")
        assert v3.ask(peer, v3_frames.request(wire.ADD_ENTRY)).status == wire.EOK
        again = v3.ask(peer, auth("token", TOKEN, txn=10))
        assert again.authResponse == wire.AuthMessage(authPluginName="AuthDisabledPlugin", payload=b"")


def test_in_with_a_password_and_on_in_v2(tmp_path_factory: pytest.TempPathFactory) -> None:
    """SASL is done in V3, then V2 is used on the same connection, as clients do that only log in with V3."""
    provider = SaslServer({"me": "p"}, re.compile(".*"))
    with local_bookie(tmp_path_factory.mktemp("sasl"), provider=provider) as bookie, bookie.peer() as peer:
        log_in(peer, 3, "sasl", SaslClient("me", "p").session(""))
        assert v3.ask(peer, v3_frames.request(wire.ADD_ENTRY)).status == wire.EOK
        assert peer.ask(add(2, 0, b"x")).code == 0
        assert peer.ask(read(2, 0)).code == 0


@pytest.mark.parametrize("kind", [Channel, ChannelV3])
def test_channels_log_in(bookie: LocalBookie, kind: type[BookieChannel]) -> None:
    """This project's client logs in with either protocol; a wrong token and a wrong kind of login raise errors."""
    host, port = bookie.address
    digest = Digest.of(password=b"p")
    with kind.connect(host, port, security=Security(auth=TokenClient(TOKEN))) as channel:
        channel.add(77, 0, b"hello", digest=digest, lac=-1, length=5)
    with pytest.raises(BookKeeperError) as refused:
        kind.connect(host, port, security=Security(auth=TokenClient(b"marker" * 4)))
    assert "marker" not in str(refused.value)
    with pytest.raises(BookKeeperError):
        kind.connect(host, port, security=Security(auth=SaslClient("me", "p")))


def test_a_wrong_plugin_may_try_again(bookie: LocalBookie) -> None:
    """The wrong plugin gets an error, and the right one succeeds afterwards."""
    with bookie.peer() as peer:
        asked = auth("sasl", b"", txn=4)
        assert v3.ask(peer, asked) == wire.Response(header=asked.header, status=wire.EUA)
        log_in(peer, 3, "token", TokenClient(TOKEN).session(""))


def test_a_wrong_token_is_the_end(peer: Peer) -> None:
    """A wrong token gets an error, and the connection is closed."""
    asked = auth("token", b"wrong", txn=5)
    assert v3.ask(peer, asked) == wire.Response(header=asked.header, status=wire.EUA)
    assert peer.closed()


def test_what_follows_the_token_meets_its_outcome(bookie: LocalBookie) -> None:
    """Requests in the same segment are served after it, in the order of what they wait for."""
    with bookie.peer() as peer:
        v3.send(peer, auth("token", TOKEN), *(v3_frames.request(wire.ADD_ENTRY, txn=txn) for txn in range(2, 30)))
        answers = [v3.answer(peer) for _ in range(29)]
        assert answers[0].header.operation == wire.AUTH
        assert {answer.status for answer in answers} == {wire.EOK}
        assert [answer.header.txnId for answer in answers[1:]] == list(range(2, 30))


def test_another_plugin_again_and_again(bookie: LocalBookie) -> None:
    """Each wrong plugin is an error, and the third one, or in V2 the first, closes the connection; all are reported."""
    before = bookie.stat("turned_away_19"), bookie.stat("auth_other_plugin")
    with bookie.peer() as peer:
        for txn in (1, 2, 3):
            asked = auth("sasl", b"", txn=txn)
            assert v3.ask(peer, asked) == wire.Response(header=asked.header, status=wire.EUA)
        assert peer.closed()
    with bookie.peer() as peer:
        peer.sock.sendall(v2_frame(2, "sasl", b""))
        assert peer.closed()
    after = bookie.stat("turned_away_19"), bookie.stat("auth_other_plugin")
    assert after == (before[0] + 2, before[1] + 4)
    assert bookie.stat("auth_sessions") == 0
