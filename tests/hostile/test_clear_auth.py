"""AUTH in clear around START_TLS, as Java's client sends it: what it proves inside TLS, and what it does not.

Modules: server.clear_auth, server.gate, server.intake, server.upgrade.
"""

import contextlib
import re
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest

from bookie.auth.certificate import server
from bookie.auth.provider import ServerProvider
from bookie.auth.sasl import SaslClient, SaslServer
from bookie.auth.settings import AuthSettings
from bookie.auth.token import TokenClient, TokenServer
from tests.fixtures.certificates import Authority, Party
from tests.hostile.auth_frames import EOK, EUA, auth, log_in, receive, said
from tests.hostile.local import LocalBookie, local_bookie
from tests.hostile.peer import Peer, add, read
from tests.hostile.tls_peer import ACCEPTED, START_TLS, TlsPeer, client_context, settings_of
from tests.reference.wire_v2 import encode_request

OK, UNAUTHORIZED = 0, 102
TOKEN = b"a-token-of-enough-bytes"
FIRST = auth(3, "sasl", b"")
PROTOCOLS = pytest.mark.parametrize("protocol", [2, 3])
DISABLED = "AuthDisabledPlugin"


@pytest.fixture(scope="module")
def ca(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """The certificate authority of all parties."""
    return Authority(tmp_path_factory.mktemp("ca"))


@pytest.fixture(scope="module")
def party(ca: Authority) -> Party:
    """The bookie's certificate."""
    return ca.issue("bookie", hosts=["127.0.0.1"])


@contextlib.contextmanager
def guarded(tmp_path: Path, party: Party, provider: ServerProvider | None) -> Iterator[LocalBookie]:
    """A bookie that must have no encrypted connection left at the end."""
    with local_bookie(tmp_path, provider=provider, tls=settings_of(party)) as bookie:
        yield bookie
        bookie.until("tls_connections", lambda count: count == 0)
        assert bookie.stat("tls_handshaking") == 0
        bookie.until("auth_sessions", lambda count: count == 0)


@pytest.fixture
def bookie(tmp_path: Path, party: Party) -> Iterator[LocalBookie]:
    """A bookie with one user."""
    with guarded(tmp_path, party, SaslServer({"me": "p"}, re.compile(".*"))) as bookie:
        yield bookie


def shake(peer: Peer, ca: Authority) -> None:
    """Do the TLS handshake. The peer takes whatever arrives for a part of it, so nothing in clear may arrive."""
    assert peer.take(len(ACCEPTED)) == ACCEPTED
    peer.sock = client_context(ca).wrap_socket(peer.sock, server_hostname="127.0.0.1")


def client_hello(ca: Authority) -> bytes:
    """Return a client's first handshake messages."""
    outgoing = ssl.MemoryBIO()
    shy = client_context(ca).wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="127.0.0.1")
    with contextlib.suppress(ssl.SSLWantReadError):
        shy.do_handshake()
    return outgoing.read()


@PROTOCOLS
def test_the_first_message_in_the_segment_of_start_tls(bookie: LocalBookie, ca: Authority, protocol: int) -> None:
    """It is answered inside TLS, where the authentication is completed; nothing else is served before."""
    session = SaslClient("me", "p").session("127.0.0.1")
    with bookie.peer() as peer:
        peer.sock.sendall(START_TLS + auth(protocol, "sasl", session.first() or b""))
        shake(peer, ca)
        challenge = said(protocol, receive(peer))
        assert (challenge.status, challenge.plugin) == (EOK, "sasl")
        if protocol == 2:
            assert peer.ask(read(1, 0)).code == UNAUTHORIZED
        peer.sock.sendall(auth(protocol, "sasl", session.answer(challenge.payload) or b""))
        assert session.answer(said(protocol, receive(peer)).payload) is None
        assert session.done
        assert peer.ask(add(1, 0, b"x")).code == OK
    assert bookie.stat("auth_accepted") == 1


def test_a_v2_message_in_front_of_start_tls_in_its_segment(bookie: LocalBookie, ca: Authority) -> None:
    """START_TLS is answered first and the message inside TLS: Java's V2 client fails if it reads them the other way."""
    session = SaslClient("me", "p").session("127.0.0.1")
    with bookie.peer() as peer:
        peer.sock.sendall(auth(2, "sasl", session.first() or b"") + START_TLS)
        shake(peer, ca)
        challenge = said(2, receive(peer))
        peer.sock.sendall(auth(2, "sasl", session.answer(challenge.payload) or b""))
        assert session.answer(said(2, receive(peer)).payload) is None
        assert session.done
        assert peer.ask(add(1, 0, b"x")).code == OK
    assert bookie.stat("auth_accepted") == 1


@pytest.mark.parametrize("behind", [b"\0", FIRST, START_TLS])
def test_a_v2_message_and_start_tls_with_more_behind(bookie: LocalBookie, behind: bytes) -> None:
    """They are served in their order: after a frame of V2, START_TLS is none, and the connection is closed."""
    with bookie.peer() as peer:
        peer.sock.sendall(auth(2, "sasl", b"") + START_TLS + behind)
        assert not peer.take_all().startswith(ACCEPTED)
    assert bookie.stat("upgrades") == 0


def test_a_message_that_is_cut_anywhere(bookie: LocalBookie, ca: Authority) -> None:
    """Cut at every byte, a part comes with START_TLS and the rest after its response, alone or with the ClientHello."""
    hello = client_hello(ca)
    for cut in range(len(FIRST) + 1):
        with bookie.peer() as peer:
            peer.sock.sendall(START_TLS + FIRST[:cut])
            assert peer.take(len(ACCEPTED)) == ACCEPTED
            peer.sock.sendall(FIRST[cut:] + hello)
            assert peer.take(1) == b"\x16"
        with bookie.peer() as peer:
            peer.sock.sendall(START_TLS + FIRST[:cut])
            assert peer.take(len(ACCEPTED)) == ACCEPTED
            for byte in FIRST[cut:]:
                peer.sock.sendall(bytes([byte]))
            peer.sock = client_context(ca).wrap_socket(peer.sock, server_hostname="127.0.0.1")
            assert said(3, receive(peer)).plugin == "sasl"


READ = encode_request(read(1, 0))
TOO_LONG = auth(3, "sasl", bytes(1 << 17))


@pytest.mark.parametrize(
    "behind",
    [FIRST + FIRST, FIRST + READ, FIRST + b"\0", FIRST + b"\x16", READ, START_TLS, TOO_LONG[:4], b"\x16", bytes(4)],
)
@pytest.mark.parametrize("together", [True, False], ids=["in its segment", "behind the answer"])
def test_nothing_else_in_clear(bookie: LocalBookie, behind: bytes, *, together: bool) -> None:
    """A second message, other requests, an AUTH above the limit, and TLS too early end the connection unserved."""
    if not together and behind.endswith(b"\x16"):
        behind += b"not a record of TLS"
    with bookie.peer() as peer:
        if together:
            peer.sock.sendall(START_TLS + behind)
            assert peer.take_all() == b""
        else:
            peer.sock.sendall(START_TLS)
            assert peer.take(len(ACCEPTED)) == ACCEPTED
            peer.sock.sendall(behind + bytes(5))
            assert peer.take_all()[:1] in {b"", b"\x15"}
    assert bookie.stat("auths") == bookie.stat("reads") == bookie.stat("tls_handshakes") == 0
    assert bookie.stat("upgrades") == (not together)


def test_a_client_hello_before_the_answer(bookie: LocalBookie, ca: Authority) -> None:
    """Even after the message, it comes from a client that does not wait for the response."""
    with bookie.peer() as peer:
        peer.sock.sendall(START_TLS + FIRST + client_hello(ca))
        assert peer.take_all() == b""
    assert bookie.stat("upgrades") == 0


def test_half_a_message_and_gone(bookie: LocalBookie) -> None:
    """Nothing of it is kept, on whichever loop it was."""
    for cut in range(len(FIRST) + 1):
        for later in (0, 1):
            with bookie.peer() as peer:
                peer.sock.sendall(START_TLS + FIRST[: cut - later])
                assert peer.take(len(ACCEPTED)) == ACCEPTED
                peer.sock.sendall(FIRST[cut - later : cut])
    bookie.until("input_buffer_bytes", lambda count: count == 0)


def test_half_a_message_and_no_more(tmp_path: Path, party: Party) -> None:
    """The connection is closed when the time for the handshake is over."""
    provider = SaslServer({"me": "p"}, re.compile(".*"))
    tls = settings_of(party, handshake_timeout_ms=300)
    with local_bookie(tmp_path, provider=provider, tls=tls) as bookie, bookie.peer() as peer:
        peer.sock.sendall(START_TLS + FIRST[:9])
        assert peer.take(len(ACCEPTED)) == ACCEPTED
        assert peer.closed()


@PROTOCOLS
def test_a_token_in_clear_does_not_count(tmp_path: Path, ca: Authority, party: Party, protocol: int) -> None:
    """Another party may have sent its own token before the client's handshake, so the connection ends inside TLS."""
    with guarded(tmp_path, party, TokenServer((TOKEN,))) as bookie:
        with bookie.peer() as peer:
            peer.sock.sendall(START_TLS + auth(protocol, "token", TOKEN))
            shake(peer, ca)
            if protocol == 3:
                assert said(3, receive(peer)).status == EUA
            assert peer.closed()
        assert bookie.stat("auth_accepted") == 0
        with TlsPeer(bookie.address, client_context(ca)) as peer:
            log_in(peer, protocol, "token", TokenClient(TOKEN).session("127.0.0.1"))


def test_a_proof_in_clear_counts(bookie: LocalBookie, ca: Authority) -> None:
    """Java's client, if it begins before it asks for encryption, gets the challenge in clear and answers at once."""
    session = SaslClient("me", "p").session("127.0.0.1")
    with bookie.peer() as peer:
        peer.sock.sendall(auth(3, "sasl", session.first() or b""))
        challenge = said(3, receive(peer))
        peer.sock.sendall(START_TLS + auth(3, "sasl", session.answer(challenge.payload) or b""))
        shake(peer, ca)
        assert session.answer(said(3, receive(peer)).payload) is None
        assert session.done
        assert peer.ask(add(1, 0, b"x")).code == OK
    assert bookie.stat("auth_accepted") == 1


def test_a_wrong_proof_in_clear(bookie: LocalBookie, ca: Authority) -> None:
    """A wrong proof ends a connection in clear as it ends any other."""
    session = SaslClient("me", "wrong").session("127.0.0.1")
    with bookie.peer() as peer:
        peer.sock.sendall(auth(3, "sasl", session.first() or b""))
        challenge = said(3, receive(peer))
        peer.sock.sendall(START_TLS + auth(3, "sasl", session.answer(challenge.payload) or b""))
        shake(peer, ca)
        assert said(3, receive(peer)).status == EUA
        assert peer.closed()
    assert bookie.stat("auth_accepted") == 0


def test_who_logged_in_before_start_tls(bookie: LocalBookie, ca: Authority) -> None:
    """A quick Java client is not asked again, and its last, empty message is answered inside TLS."""
    with bookie.peer() as peer:
        log_in(peer, 3, "sasl", SaslClient("me", "p").session("127.0.0.1"))
        peer.sock.sendall(START_TLS + FIRST)
        shake(peer, ca)
        reported = said(3, receive(peer))
        assert peer.ask(add(1, 0, b"x")).code == OK
    with bookie.peer() as peer:
        log_in(peer, 3, "sasl", SaslClient("me", "p").session("127.0.0.1"))
        peer.sock.sendall(FIRST)
        assert said(3, receive(peer)) == reported, "in clear it is told the same"
    assert bookie.stat("auth_accepted") == 2


def test_whose_token_was_taken_before_start_tls(tmp_path: Path, ca: Authority, party: Party) -> None:
    """It is asked again, because whoever saw it in clear may be the one inside TLS."""
    with guarded(tmp_path, party, TokenServer((TOKEN,))) as bookie, bookie.peer() as peer:
        log_in(peer, 3, "token", TokenClient(TOKEN).session("127.0.0.1"))
        peer.sock.sendall(START_TLS)
        shake(peer, ca)
        assert peer.ask(read(1, 0)).code == UNAUTHORIZED
        log_in(peer, 2, "token", TokenClient(TOKEN).session("127.0.0.1"))
        assert peer.ask(add(1, 0, b"x")).code == OK


@PROTOCOLS
def test_where_everybody_is_let_in(tmp_path: Path, ca: Authority, party: Party, protocol: int) -> None:
    """The client learns inside TLS that it need not authenticate; requests in the same record are served."""
    first = auth(protocol, "sasl", b"")
    with local_bookie(tmp_path, tls=settings_of(party)) as bookie, bookie.peer() as peer:
        peer.sock.sendall(first + START_TLS if protocol == 2 else START_TLS + first)
        shake(peer, ca)
        peer.send(*(add(1, entry, b"x") for entry in range(20)))
        assert said(protocol, receive(peer)).plugin == DISABLED
        assert {peer.answer().code for _ in range(20)} == {OK}


def test_whom_the_certificate_lets_in(tmp_path: Path, ca: Authority, party: Party) -> None:
    """The message is answered after the decision on the certificate."""
    tls = settings_of(party, trust=ca.certificate)
    writer = ca.issue("writer", unit="0:writer")
    provider = server(AuthSettings(authorized_roles="writer"))
    with local_bookie(tmp_path, provider=provider, tls=tls) as bookie, bookie.peer() as peer:
        peer.sock.sendall(START_TLS + FIRST)
        assert peer.take(len(ACCEPTED)) == ACCEPTED
        peer.sock = client_context(ca, writer).wrap_socket(peer.sock, server_hostname="127.0.0.1")
        assert said(3, receive(peer)).plugin == DISABLED
        assert peer.ask(add(1, 0, b"x")).code == OK
