"""The rights of tokens: requests are refused over sockets in both protocols, and rights are revoked from open
connections.

Modules: server.gate, server.users, server.policy.
"""

import logging
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from bookie.auth import sasl
from bookie.auth.provider import Outcome
from bookie.auth.settings import AuthSettings
from bookie.auth.token import TokenClient, TokenServer, server
from bookie.auth.token_file import parse
from bookie.pb import wire_pb2 as wire
from bookie.server.metrics.server import users
from tests.fixtures.certificates import Authority
from tests.hostile import v3, v3_frames
from tests.hostile.auth_frames import ask, auth, log_in
from tests.hostile.local import LocalBookie, local_bookie
from tests.hostile.peer import KEY, TIMEOUT_S, Peer, add, batch, read
from tests.hostile.tls_peer import client_context, settings_of
from tests.reference.wire_v2 import Request, encode_request

OK, UNAUTHORIZED = 0, 102
NONE, READ, WRITE, ADMIN = range(4)
ROLES = {"read": READ, "write": WRITE, "admin": ADMIN}
TOKENS = {role: f"{role}-token-of-enough-bytes".encode() for role in (*ROLES, "old")}
FENCE = 1
either_protocol = pytest.mark.parametrize("protocol", [2, 3])
V2: dict[str, tuple[Request, int]] = {
    "read": (read(1, 0), READ),
    "read of the LAC": (read(1, -1), READ),
    "batch read": (batch(1, 0), READ),
    "add": (add(1, 1), WRITE),
    "recovery add": (add(1, 0, flags=2), WRITE),
    "fence": (read(1, 0, flags=FENCE, key=KEY), WRITE),
    "batch fence": (batch(1, 0, flags=FENCE, key=KEY), WRITE),
}
V3 = {
    wire.READ_ENTRY: READ,
    wire.BATCH_READ_ENTRY: READ,
    wire.READ_LAC: READ,
    wire.GET_BOOKIE_INFO: READ,
    wire.ADD_ENTRY: WRITE,
    wire.WRITE_LAC: WRITE,
    wire.FORCE_LEDGER: WRITE,
    wire.WRITE_CLOSE: WRITE,
    wire.GET_LIST_OF_ENTRIES_OF_LEDGER: ADMIN,
    wire.AUTH: NONE,
    wire.START_TLS: NONE,
    wire.RANGE_READ_ENTRY: NONE,
    wire.RANGE_ADD_ENTRY: NONE,
}
"""docs/security.md has this table."""


def tokens_of(directory: Path, *lines: str) -> Path:
    """Write the bookie's token file."""
    file = directory / "tokens"
    file.write_text("".join(f"{line}\n" for line in lines))
    return file


@pytest.fixture
def bookie(tmp_path: Path) -> Iterator[LocalBookie]:
    """A bookie with a token for each role, one without a role, and an entry in ledger 1. Its file can be read again."""
    lines = [f"{role}:{role}er:{TOKENS[role].decode()}" for role in ROLES]
    file = tokens_of(tmp_path, TOKENS["old"].decode(), *lines)
    provider = server(AuthSettings(token_file=str(file)))
    with local_bookie(tmp_path / "bookie", provider=provider, auth_refresh_s=0) as bookie:
        with of_role(bookie, "old") as peer:
            assert peer.ask(add(1, 0, b"x")).code == OK
        yield bookie


def of_role(bookie: LocalBookie, role: str, protocol: int = 2) -> Peer:
    """Return an authenticated connection."""
    peer = bookie.peer()
    try:
        log_in(peer, protocol, "token", TokenClient(TOKENS[role]).session(""))
    except BaseException:
        peer.close()
        raise
    return peer


@pytest.mark.parametrize("role", [*ROLES, "old"])
def test_every_operation_of_v2(bookie: LocalBookie, role: str) -> None:
    """S8: an operation without the right is EUA in its own response, even of a batch read; the others are served."""
    have = ROLES.get(role, ADMIN)
    with of_role(bookie, role) as peer:
        for what, (request, need) in V2.items():
            wanted = OK if have >= need else UNAUTHORIZED
            assert peer.ask(request).code == wanted, what
        assert ask(peer, 2, "token", b"again").plugin == "AuthDisabledPlugin"
    missing = sum(need > have for _, need in V2.values())
    assert bookie.stat("refused_rights") == missing
    (counts,) = [one for one in bookie.port.users() if one.name == f"token:{role}er"] or [bookie.port.users()[0]]
    assert counts.refused == missing


@pytest.mark.parametrize("role", [*ROLES, "old"])
def test_every_operation_of_v3(bookie: LocalBookie, role: str) -> None:
    """S8: all operations of every version are tried; those that are never served are refused as usual."""
    assert set(V3) == set(wire.OperationType.values())
    have = ROLES.get(role, ADMIN)
    with of_role(bookie, role, 3) as peer, of_role(bookie, "old", 3) as anybody:
        for operation, need in V3.items():
            for version in (wire.VERSION_THREE, wire.VERSION_TWO):
                request = v3_frames.request(operation, version=version, priority=3)
                status = v3.ask(peer, request).status
                if have < need:
                    assert status == wire.EUA, (operation, version)
                else:
                    assert status == v3.ask(anybody, request).status != wire.EUA, (operation, version)


def test_a_fence_of_a_reader_does_nothing(bookie: LocalBookie) -> None:
    """S8: the writer continues; neither a fence of V3 nor a poll gives a reader rights that it lacks."""
    with of_role(bookie, "read", 3) as reader, of_role(bookie, "write") as writer:
        fence = v3.read3(1, 0, flag=v3.FENCE, masterKey=KEY)
        assert v3.ask(reader, fence).status == wire.EUA
        assert writer.ask(add(1, 1)).code == OK
        poll = v3.read3(1, 0, previousLAC=-1, timeOut=10)
        assert v3.ask(reader, poll).status in (wire.EOK, wire.ENOENTRY)


def test_users_are_counted_by_name(bookie: LocalBookie, caplog: pytest.LogCaptureFixture) -> None:
    """S8: connections, logins and refusals of each user are counted, and the log line of a login names the user."""
    with caplog.at_level(logging.DEBUG, "bookie.server.requests.authentication"), of_role(bookie, "read") as reader:
        assert reader.ask(add(1, 1)).code == UNAUTHORIZED
        with of_role(bookie, "read"), of_role(bookie, "write"):
            found = {one.name: one[1:] for one in bookie.port.users()}
            assert found == {
                "token:reader": (2, 2, 1),
                "token:writeer": (1, 1, 0),
                "token:line-1": found["token:line-1"],
            }
    assert "token:reader" in {vars(record).get("principal") for record in caplog.records}
    assert TOKENS["read"].decode() not in caplog.text


def test_the_log_names_who_was_refused(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """S8: at most one line per second, with the number of requests, and none without a refusal."""
    provider = TokenServer(parse([f"read:{role}:{TOKENS[role].decode()}" for role in ROLES], "here"))
    with (
        local_bookie(tmp_path, provider=provider) as bookie,
        of_role(bookie, "read") as one,
        of_role(bookie, "write") as two,
    ):
        assert {one.ask(add(1, entry)).code for entry in range(50)} == {UNAUTHORIZED}
        assert two.ask(read(1, 0)).code != UNAUTHORIZED
    rows = [vars(record) for record in caplog.records if "lacks the right" in record.getMessage()]
    assert {row["user"] for row in rows} == {"token:read"}
    assert sum(row["times"] for row in rows) == 50


@either_protocol
def test_a_token_that_is_taken_back(bookie: LocalBookie, tmp_path: Path, protocol: int) -> None:
    """S8: its connections are closed, with the reason in the log, and it cannot log in; other tokens stay valid."""
    with of_role(bookie, "read", protocol) as gone, of_role(bookie, "write", protocol) as less:
        with of_role(bookie, "admin", protocol) as stays, of_role(bookie, "old", protocol) as moved:
            lines = (f"read:writeer:{TOKENS['write'].decode()}", f"admin:adminer:{TOKENS['admin'].decode()}")
            tokens_of(tmp_path, *lines, "#", TOKENS["old"].decode())
            bookie.port.refresh()
            assert gone.closed()
            assert less.closed(), "what it may do has changed"
            assert [peer.ask(read(1, 0)).code for peer in (stays, moved)] == [OK, OK]
        assert bookie.stat("turned_away_20") == 2
        assert {one.name for one in bookie.port.users()} == {"token:adminer", "token:line-1"}
    with of_role(bookie, "write") as again:
        assert again.ask(read(1, 0)).code == OK
        assert again.ask(add(1, 1)).code == UNAUTHORIZED
    with pytest.raises((EOFError, ConnectionResetError)):
        of_role(bookie, "read")


@pytest.mark.parametrize("where", ["clear", "tls"])
def test_a_user_who_is_taken_back(tmp_path: Path, where: str) -> None:
    """S8: in clear, and inside TLS after authentication in clear."""

    def users(*names: str) -> None:
        options = " ".join(f'user_{name}="a password"' for name in names)
        file.write_text(f"Bookie {{ a.B required {options}; }};")

    file = tmp_path / "jaas.conf"
    users("one", "two")
    provider = sasl.server(AuthSettings(jaas_file=str(file), allowed_ids=".*"))
    ca = Authority(tmp_path / "ca")
    tls = settings_of(ca.issue("bookie", hosts=["127.0.0.1"])) if where == "tls" else None
    with (
        local_bookie(tmp_path / "bookie", provider=provider, tls=tls, auth_refresh_s=0) as bookie,
        bookie.peer() as one,
        bookie.peer() as two,
    ):
        for name, peer in (("one", one), ("two", two)):
            log_in(peer, 3, "sasl", sasl.SaslClient(name, "a password").session(""))
            if where == "tls":
                v3.send(peer, v3_frames.request(wire.START_TLS))
                assert v3.answer(peer).status == wire.EOK
                peer.sock = client_context(ca).wrap_socket(peer.sock, server_hostname="127.0.0.1")
            assert peer.ask(add(1, 0, b"x")).code == OK
        users("two")
        bookie.port.refresh()
        assert one.closed()
        assert two.ask(read(1, 0)).code == OK
        assert [(row.name, row.connections) for row in bookie.port.users()] == [("two", 1)]


def test_a_file_that_cannot_be_used_takes_nothing_back(bookie: LocalBookie, tmp_path: Path) -> None:
    """S8: after a truncated file, or one that others may read, everyone stays logged in."""
    with of_role(bookie, "read") as reader:
        for text, mode in (("short", 0o600), (TOKENS["old"].decode(), 0o644)):
            tokens_of(tmp_path, text).chmod(mode)
            bookie.port.refresh()
            assert reader.ask(read(1, 0)).code == OK
    (tmp_path / "tokens").chmod(0o600)
    bookie.port.refresh()
    with pytest.raises((EOFError, ConnectionResetError)):
        of_role(bookie, "read")


def test_it_is_looked_at_by_itself(tmp_path: Path) -> None:
    """S8: the file is read again without a request."""
    file = tokens_of(tmp_path, TOKENS["read"].decode())
    provider = server(AuthSettings(token_file=str(file)))
    with (
        local_bookie(tmp_path / "bookie", provider=provider, auth_refresh_s=1) as bookie,
        of_role(bookie, "read") as peer,
    ):
        tokens_of(tmp_path, TOKENS["old"].decode())
        assert peer.closed()


def test_metrics_name_users(bookie: LocalBookie) -> None:
    """Connections are counted by user; those without a login are nobody."""
    with of_role(bookie, "read") as reader, bookie.peer() as stranger:
        assert reader.ask(add(1, 1)).code == UNAUTHORIZED
        assert stranger.ask(add(1, 1)).code == UNAUTHORIZED
        found = {
            (family.name, dict(sample.labels)["user"]): sample.value
            for family in users(bookie.port.users(), bookie.port.stats())
            for sample in family.samples
        }
    assert found["pybookie_user_connections", "token:reader"] == found["pybookie_user_connections", "nobody"] == 1
    assert found["pybookie_user_logins_total", "token:reader"] == 1
    assert found["pybookie_user_refused_total", "token:reader"] == found["pybookie_user_refused_total", "nobody"] == 1


class Forgetful:
    """A provider that blocks until it is told otherwise, and may have forgotten the client by then."""

    plugin_name = "token"
    challenges = False

    def __init__(self) -> None:
        self.thinks, self.go = threading.Event(), threading.Event()
        self.remembers = True

    def session(self, peer: str) -> "Forgetful":  # noqa: ARG002
        """Return itself: the provider is stateless."""
        return self

    def process(self, token: bytes) -> Outcome:  # noqa: ARG002
        """Accept everyone in the end."""
        self.thinks.set()
        assert self.go.wait(TIMEOUT_S)
        return Outcome(b"", "somebody", credential=b"c")

    def upgraded(self, certificate: bytes | None) -> Outcome:  # noqa: ARG002
        """Return an outcome without meaning: these tests make no upgrade to TLS."""
        return Outcome()

    def refresh(self) -> bool:
        """Report that it has forgotten."""
        self.remembers = False
        return True

    def knows(self, outcome: Outcome) -> bool:  # noqa: ARG002
        """Know everyone or nobody."""
        return self.remembers


def test_taken_back_while_it_logs_in(tmp_path: Path) -> None:
    """S8: if the change comes between decision and response, the connection is closed and nothing is served on it.
    The next one of that name, once it is known again, is not affected.
    """
    provider = Forgetful()
    with local_bookie(tmp_path, provider=provider, auth_refresh_s=0) as bookie:
        with bookie.peer() as peer:
            peer.sock.sendall(auth(2, "token", b"x") + encode_request(add(1, 0, b"x")))
            assert provider.thinks.wait(TIMEOUT_S)
            bookie.port.refresh()
            provider.go.set()
            peer.take_all()
        assert (bookie.stat("turned_away_20"), bookie.stat("adds")) == (1, 0)
        provider.remembers = True
        with bookie.peer() as again:
            ask(again, 2, "token", b"x")
            assert again.ask(add(1, 0, b"x")).code == OK
