"""Connections that must authenticate first, over sockets: honest, confused and hostile clients.

Modules: server.policy, server.gate.
"""

import contextlib
import logging
import re
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bookie.auth.provider import Outcome
from bookie.auth.sasl import SaslClient, SaslServer
from bookie.auth.token import TokenClient, TokenServer
from tests.fixtures.draws import examples
from tests.hostile.auth_frames import EOK, ask, auth, log_in, receive, said, v2_auth
from tests.hostile.local import LocalBookie, local_bookie
from tests.hostile.peer import TIMEOUT_S, Peer, add, batch, read
from tests.reference.wire_v2 import encode_request

OK, UNAUTHORIZED = 0, 102
TOKEN = b"marker-token-that-nobody-may-see"
PASSWORD = "marker-password-that-nobody-may-see"
USER = "bookkeeper"
pytestmark = pytest.mark.leaks("one bookie serves several tests, and opens logs as it goes")
either_protocol = pytest.mark.parametrize("protocol", [2, 3])


@pytest.fixture(scope="module")
def bookie(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalBookie]:
    """A bookie that requires the token."""
    with local_bookie(tmp_path_factory.mktemp("token"), provider=TokenServer((TOKEN,))) as bookie:
        yield bookie


@pytest.fixture(scope="module")
def sasl_bookie(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalBookie]:
    """A bookie that requires a user's password."""
    provider = SaslServer({USER: PASSWORD}, re.compile(".*"))
    with local_bookie(tmp_path_factory.mktemp("sasl"), provider=provider) as bookie:
        yield bookie


@pytest.fixture
def peer(bookie: LocalBookie) -> Iterator[Peer]:
    """A connection that is not authenticated."""
    with bookie.peer() as peer:
        yield peer


def eventually(condition: Callable[[], bool], peer: Peer) -> None:
    """Poll the condition, with an exchange on `peer` in between so that the bookie's loops make progress."""
    for _ in range(20_000):
        if condition():
            return
        peer.ask(read(1, 0))
    raise AssertionError("it did not come to pass")


def test_nothing_is_served_before(peer: Peer) -> None:
    """Adds and reads are refused in their own format, and nothing of them is stored."""
    assert peer.ask(add(1, 0, b"x")).code == UNAUTHORIZED
    assert peer.ask(read(1, 0)).code == UNAUTHORIZED
    assert peer.ask(read(1, -1, flags=1, key=b"k" * 20)).code == UNAUTHORIZED
    assert peer.ask(read(1, 0, version=9)).code == UNAUTHORIZED
    peer.send(batch(1, 0))
    assert peer.closed()


@either_protocol
def test_in_with_the_token(bookie: LocalBookie, protocol: int) -> None:
    """After that, AUTH is answered as by a bookie without authentication."""
    with bookie.peer() as peer:
        log_in(peer, protocol, "token", TokenClient(TOKEN).session(""))
        assert peer.ask(add(2, protocol, b"x")).code == OK
        answer = ask(peer, 2, "token", b"again")
        assert (answer.plugin, answer.payload) == ("AuthDisabledPlugin", b"")


@either_protocol
def test_in_with_a_password(sasl_bookie: LocalBookie, protocol: int) -> None:
    """SASL takes two rounds, and Java's final empty message is answered too."""
    with sasl_bookie.peer() as peer:
        log_in(peer, protocol, "sasl", SaslClient(USER, PASSWORD).session(""))
        assert ask(peer, protocol, "sasl", b"").plugin == "AuthDisabledPlugin"
        assert peer.ask(add(2, protocol, b"x")).code == OK


def test_what_follows_the_token_meets_its_outcome(bookie: LocalBookie) -> None:
    """Frames in the same segment wait until Python has decided, and are answered in order."""
    with bookie.peer() as peer:
        requests = b"".join(encode_request(add(3, entry, b"x" * 100)) for entry in range(50))
        peer.sock.sendall(auth(2, "token", TOKEN) + requests)
        assert said(2, receive(peer)).status == EOK
        assert {peer.answer().code for _ in range(50)} == {OK}
    with bookie.peer() as peer:
        peer.sock.sendall(auth(2, "token", b"wrong") + requests)
        assert peer.closed()


def test_a_wrong_password_ends_a_v2_connection(sasl_bookie: LocalBookie) -> None:
    """V2 has no code for a failed login, so the bookie closes the connection."""
    with sasl_bookie.peer() as peer, pytest.raises((EOFError, ConnectionResetError)):
        log_in(peer, 2, "sasl", SaslClient(USER, "wrong").session(""))


@pytest.mark.parametrize(
    "frame",
    [
        auth(2, "sasl", TOKEN),
        auth(2, "", TOKEN),
        v2_auth(b""),
        v2_auth(b"\xff" * 40),
        v2_auth(b"\x0a\x05token"),
        auth(2, "token", b"x" * (64 << 10)),
    ],
    ids=["another plugin", "no plugin", "nothing", "no message", "no payload", "too large"],
)
def test_wrong_v2_messages_cost_the_connection(peer: Peer, frame: bytes) -> None:
    """The connection is closed without a response."""
    peer.sock.sendall(frame)
    assert peer.closed()


@settings(max_examples=examples(60), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    messages=st.lists(st.one_of(st.binary(max_size=200), st.just(b"")), min_size=1, max_size=4), proper=st.booleans()
)
def test_any_message_is_answered_or_costs_the_connection(
    sasl_bookie: LocalBookie, messages: list[bytes], *, proper: bool
) -> None:
    """Arbitrary payloads, and arbitrary bytes in place of a message, authenticate nobody, and the bookie lives."""
    with sasl_bookie.peer() as peer:
        frames = [auth(2, "sasl", message) if proper else v2_auth(message) for message in messages]
        try:
            for frame in frames:
                peer.sock.sendall(frame)
                receive(peer)
            assert peer.ask(read(1, 0)).code == UNAUTHORIZED
        except (EOFError, ConnectionError):
            pass


def test_nothing_secret_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Tokens and passwords, right or wrong, appear in no log record at any level."""
    caplog.set_level(logging.DEBUG)
    with local_bookie(tmp_path / "token", provider=TokenServer((TOKEN,))) as bookie:
        with bookie.peer() as peer:
            log_in(peer, 2, "token", TokenClient(TOKEN).session(""))
        with bookie.peer() as peer:
            peer.sock.sendall(auth(2, "token", b"marker-wrong-token"))
            assert peer.closed()
    provider = SaslServer({USER: PASSWORD}, re.compile(".*"))
    with local_bookie(tmp_path / "sasl", provider=provider) as bookie:
        with bookie.peer() as peer:
            log_in(peer, 2, "sasl", SaslClient(USER, PASSWORD).session(""))
        with bookie.peer() as peer, pytest.raises((EOFError, ConnectionResetError)):
            log_in(peer, 2, "sasl", SaslClient("marker-user", "marker-wrong").session(""))
    reported = "\n".join(f"{record.getMessage()} {record.__dict__}" for record in caplog.records)
    assert "not authenticated" in reported
    assert "marker" not in reported


def test_one_line_a_second_for_whatever_an_address_does(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Wrong tokens and broken frames alternate: all are counted, and reported together."""
    times, begun, mine = 20, time.monotonic(), "127.0.0.77"
    with caplog.at_level(logging.WARNING), local_bookie(tmp_path, provider=TokenServer((TOKEN,))) as bookie:
        for _ in range(times):
            for bad in (auth(2, "token", b"wrong"), struct.pack(">i", -5)):
                with socket.create_connection(bookie.address, TIMEOUT_S, (mine, 0)) as peer:
                    peer.sendall(bad)
                    with contextlib.suppress(ConnectionResetError):
                        assert peer.recv(1) == b""
    rows = [record.__dict__ for record in caplog.records if record.levelno >= logging.WARNING]
    rows = [row for row in rows if row["peer"] == mine]  # bookies of other tests may log too
    assert sum(row["times"] for row in rows) == 2 * times
    assert len(rows) <= time.monotonic() - begun + 2


def test_who_never_finishes_holds_nothing_for_long(sasl_bookie: LocalBookie) -> None:
    """A session lasts as long as its connection, and ends with it."""
    with sasl_bookie.peer() as honest:
        log_in(honest, 2, "sasl", SaslClient(USER, PASSWORD).session(""))
        eventually(lambda: sasl_bookie.stat("auth_sessions") == 0, honest)
        half_way = [sasl_bookie.peer() for _ in range(40)]
        for peer in half_way:
            assert b"nonce" in ask(peer, 2, "sasl", b"").payload
        assert sasl_bookie.stat("auth_sessions") == 40
        for number, peer in enumerate(half_way):
            (peer.abort if number % 2 else peer.close)()
        eventually(lambda: sasl_bookie.stat("auth_sessions") == 0, honest)
        assert sasl_bookie.stat("policy_queued") == 0
    with sasl_bookie.peer() as silent, sasl_bookie.peer() as refused:
        assert refused.ask(read(1, 0)).code == UNAUTHORIZED
        assert sasl_bookie.stat("auth_sessions") == 0
        silent.close()


class Slow:
    """A provider that blocks every thread until it is told otherwise."""

    plugin_name = "slow"
    challenges = False

    def __init__(self) -> None:
        self.begun = threading.Semaphore(0)
        self.go = threading.Event()

    def session(self, peer: str) -> "Slow":  # noqa: ARG002
        """Return itself: the provider is stateless."""
        return self

    def process(self, token: bytes) -> Outcome:
        """Accept the token `quick` at once, and any other one later."""
        if token != b"quick":
            self.begun.release()
            assert self.go.wait(TIMEOUT_S)
        if token == b"break":
            raise RuntimeError("marker-of-a-secret")
        return Outcome(b"welcome", "somebody")

    def upgraded(self, certificate: bytes | None) -> Outcome:  # noqa: ARG002
        """Return an outcome without meaning: these tests make no upgrade to TLS."""
        return Outcome()


def test_a_slow_provider_holds_up_nobody_else(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """While it blocks, others are served, excess clients refused, leaving ones forgotten, and failing ones closed."""
    provider = Slow()
    with (
        local_bookie(tmp_path, provider=provider, policy_threads=2, policy_queue_max=4, io_threads=1) as bookie,
        bookie.peer() as known,
    ):
        log_in_quickly(known)
        waiting = [bookie.peer() for _ in range(4)]
        for number, peer in enumerate(waiting):
            peer.sock.sendall(auth(2, "slow", b"break" if number == 0 else b"think"))
        assert provider.begun.acquire(timeout=TIMEOUT_S)
        assert provider.begun.acquire(timeout=TIMEOUT_S)
        eventually(lambda: bookie.stat("policy_queued") == 4, known)
        assert known.ask(add(1, 0, b"x")).code == OK
        with bookie.peer() as late:
            late.sock.sendall(auth(2, "slow", b"quick"))
            assert late.closed()
        assert (bookie.stat("turned_away_13"), bookie.stat("broken_frames")) == (1, 0), "it is told for what"
        waiting[3].abort()
        provider.go.set()
        assert waiting[0].closed()
        for peer in waiting[1:3]:
            assert said(2, receive(peer)).payload == b"welcome"
            assert peer.ask(read(1, 0)).code == OK
        eventually(lambda: bookie.stat("policy_queued") == bookie.stat("auth_sessions") == 0, known)
        for peer in waiting:
            peer.close()
    assert "marker" not in caplog.text


def log_in_quickly(peer: Peer) -> None:
    """Log in as a client that the slow provider accepts at once."""
    assert ask(peer, 2, "slow", b"quick").payload == b"welcome"


def test_stopping_does_not_wait_for_the_gate(tmp_path: Path) -> None:
    """Connections in the middle of their authentication do not delay a bookie's stop."""
    provider = SaslServer({USER: PASSWORD}, re.compile(".*"))
    with local_bookie(tmp_path, provider=provider) as bookie:
        peers = [bookie.peer() for _ in range(8)]
        for peer in peers:
            ask(peer, 2, "sasl", b"")
    for peer in peers:
        assert peer.closed()
        peer.close()


def test_who_is_not_authenticated_holds_little(tmp_path: Path) -> None:
    """Unfinished frames before any login share an eighth of the budget, and authenticated writers have the rest."""
    provider = TokenServer((TOKEN,))
    with local_bookie(tmp_path, provider=provider, input_bytes_max=8 << 20, io_threads=1) as bookie:
        writers = [bookie.peer() for _ in range(4)]
        for writer in writers:
            log_in(writer, 2, "token", TokenClient(TOKEN).session("127.0.0.1"))
        strangers = [bookie.peer() for _ in range(51)]
        for stranger in strangers:
            stranger.sock.sendall(struct.pack(">i", 60_000) + bytes(50_000))
        eventually(lambda: bookie.stat("turned_away_3") > 0, writers[0])
        assert bookie.stat("input_buffer_bytes") <= 1 << 20
        for entry in range(20):
            for ledger, writer in enumerate(writers):
                assert writer.ask(add(ledger, entry, bytes(1 << 20))).code == OK
        for peer in writers + strangers:
            peer.close()
        with bookie.peer() as late:
            eventually(lambda: bookie.stat("input_buffer_bytes") == 0, late)


@either_protocol
def test_a_long_frame_before_the_login(bookie: LocalBookie, protocol: int) -> None:
    """The length alone ends the connection, without waiting for the frame. After a login the same frame is accepted."""
    before = bookie.stat("turned_away_14")
    with bookie.peer() as stranger:
        stranger.sock.sendall(struct.pack(">i", 1 << 20))
        assert stranger.closed()
    assert bookie.stat("turned_away_14") == before + 1
    with bookie.peer() as known:
        known.sock.sendall(auth(protocol, "token", TOKEN) + encode_request(add(1, 0, bytes(1 << 20))))
        assert said(protocol, receive(known)).plugin == "token"
        assert known.answer().code == OK
