"""Requests that Python answers, passed to the handlers as the compiled module would do: input and output."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from google.protobuf.message import DecodeError
from hypothesis import given
from hypothesis import strategies as st

from bookie._fast.server import policy
from bookie.auth.provider import AuthenticationFailed, Outcome
from bookie.auth.settings import AuthSettings
from bookie.auth.token import TokenServer
from bookie.auth.token import server as token_server
from bookie.pb import wire_pb2 as wire
from bookie.server.requests import authentication
from bookie.server.requests.authentication import Authentication
from bookie.server.requests.bookie_info import BookieInfo, Capacity, Load, capacity
from bookie.server.requests.entry_list import EntryList
from tests.reference.entry_ranges import decode_entries, encode_entries
from tests.reference.storage import entry
from tests.server.handed import Handed
from tests.storage.opened import Opened

TOKEN = b"a token of sixteen bytes or more"


def request(
    operation: wire.OperationType, *, version: wire.ProtocolVersion = wire.VERSION_THREE, **part: object
) -> wire.Request:
    """Return a V3 request with a priority, so that a copied header is recognizable."""
    header = wire.BKPacketHeader(version=version, operation=operation, txnId=77, priority=100)
    return wire.Request(header=header, **part)  # type: ignore[arg-type]


def fresh(answer: bytes) -> wire.Response:
    """Parse a response whose header is the operation's own, without the priority."""
    response = wire.Response.FromString(answer)
    assert response.header.txnId == 77
    assert not response.header.HasField("priority")
    return response


# --- GET_BOOKIE_INFO --------------------------------------------------------------------------------------------------


def info(requested: int | None = None, **more: object) -> wire.Request:
    """Return the request; None leaves the field out."""
    part = wire.GetBookieInfoRequest() if requested is None else wire.GetBookieInfoRequest(requested=requested)
    return request(wire.GET_BOOKIE_INFO, getBookieInfoRequest=part, **more)  # type: ignore[arg-type]


def test_one_file_system_is_counted_once(tmp_path: Path) -> None:
    """PL4: directories on one disk share its space."""
    both = [tmp_path / "one", tmp_path / "two"]
    for directory in both:
        directory.mkdir()
    status = os.statvfs(tmp_path)
    found = capacity(both)
    assert found.total == status.f_blocks * status.f_frsize
    assert found.total == capacity(both[:1]).total


def test_other_file_systems_are_added(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """PL4: each device adds its size and its free space; the reserve of root is not free."""

    @dataclass
    class Disk:
        f_blocks: int
        f_bavail: int
        f_frsize: int = 4096
        f_bfree: int = 10**9

    @dataclass
    class Stat:
        st_dev: int

    disks = {"a": (1, Disk(100, 10)), "b": (2, Disk(50, 5)), "c": (1, Disk(100, 10))}
    monkeypatch.setattr(Path, "stat", lambda self: Stat(disks[self.name][0]))
    monkeypatch.setattr(os, "statvfs", lambda path: disks[path.name][1])
    assert capacity([tmp_path / name for name in disks]) == Capacity(150 * 4096, 15 * 4096)


@pytest.mark.parametrize("requested", [None, 0, 1, 2, 3, 4, -1])
def test_only_what_was_asked_for(requested: int | None) -> None:
    """Bit 0 requests the size, bit 1 the free space."""
    answer = fresh(BookieInfo((), lambda _: Capacity(10**12, 25 * 10**10))(info(requested)))
    part = answer.getBookieInfoResponse
    bits = requested or 0
    assert (answer.status, part.status) == (wire.EOK, wire.EOK)
    assert part.HasField("totalDiskCapacity") == bool(bits & 1)
    assert part.HasField("freeDiskSpace") == bool(bits & 2)


def test_the_load_is_told_to_those_who_ask() -> None:
    """Bit 8 requests the load; without it, and for a peer that sets every bit, the answer is that of Java."""
    bookie = BookieInfo((), lambda _: Capacity(10, 5), lambda: Load(7, 4096, read_only=True))
    part = fresh(bookie(info(259))).getBookieInfoResponse
    assert (part.totalDiskCapacity, part.freeDiskSpace) == (10, 5)
    assert (part.adds, part.journalQueueBytes, part.readOnly) == (7, 4096, True)
    assert part.uptimeMillis > 0
    for requested in (3, -1):
        plain = fresh(bookie(info(requested))).getBookieInfoResponse
        assert plain == wire.GetBookieInfoResponse(status=wire.EOK, totalDiskCapacity=10, freeDiskSpace=5)


def test_the_worked_example() -> None:
    """The response equals Java's byte for byte."""
    asked = wire.Request.FromString(bytes.fromhex("0a06080310081809ca06020803"))
    answer = BookieInfo((), lambda _: Capacity(10**12, 25 * 10**10))(asked)
    assert answer.hex() == "0a060803100818091000ca061008001080a094a58d1d188088a5a9a307"


def test_bookie_info_that_cannot_be_had() -> None:
    """A disk that does not answer, another version, and a request without its message are refused."""

    def broken(_: Sequence[Path]) -> Capacity:
        raise OSError(5, "Input/output error")

    assert fresh(BookieInfo((), broken)(info(3))).getBookieInfoResponse.status == wire.EIO
    old = fresh(BookieInfo((), broken)(info(3, version=wire.VERSION_TWO)))
    assert (old.status, old.getBookieInfoResponse.status) == (wire.EBADVERSION, wire.EBADVERSION)
    bare = fresh(BookieInfo((), broken)(request(wire.GET_BOOKIE_INFO)))
    assert (bare.status, bare.HasField("getBookieInfoResponse")) == (wire.EBADREQ, False)


# --- GET_LIST_OF_ENTRIES_OF_LEDGER ------------------------------------------------------------------------------------


def entries_of(ledger: int, **more: object) -> wire.Request:
    """Return the request."""
    part = wire.GetListOfEntriesOfLedgerRequest(ledgerId=ledger)
    return request(
        wire.GET_LIST_OF_ENTRIES_OF_LEDGER,
        getListOfEntriesOfLedgerRequest=part,
        **more,  # type: ignore[arg-type]
    )


def test_lists_of_entries(tmp_path: Path) -> None:
    """The response has Java's bytes. Unknown ledgers, lists longer than a frame and other versions are refused."""
    opened = Opened(tmp_path)
    stored = [0, 1, 2, 5, 6, 8]
    for number in stored:
        opened.direct.add(entry(4, number), b"k" * 20)
    assert opened.storage.stores is not None
    ask = EntryList(opened.storage.stores, 5 << 20)
    answer = fresh(ask(entries_of(4)))
    part = answer.getListOfEntriesOfLedgerResponse
    assert (answer.status, part.status, part.ledgerId) == (wire.EOK, wire.EOK, 4)
    assert part.availabilityOfEntriesOfLedger == encode_entries(stored)
    unknown = fresh(ask(entries_of(5)))
    assert (unknown.status, unknown.getListOfEntriesOfLedgerResponse.ledgerId) == (wire.ENOLEDGER, 5)
    assert not unknown.getListOfEntriesOfLedgerResponse.HasField("availabilityOfEntriesOfLedger")
    assert fresh(EntryList(opened.storage.stores, 256)(entries_of(4))).status == wire.EIO
    for number in range(0, 300, 3):
        opened.direct.add(entry(6, number), b"k" * 20)
    striped = fresh(EntryList(opened.storage.stores, 256)(entries_of(6))).getListOfEntriesOfLedgerResponse
    assert decode_entries(striped.availabilityOfEntriesOfLedger) == set(range(0, 300, 3))
    assert fresh(ask(entries_of(4, version=wire.VERSION_ONE))).status == wire.EBADVERSION
    assert fresh(ask(request(wire.GET_LIST_OF_ENTRIES_OF_LEDGER))).status == wire.EBADREQ
    opened.stop()


# --- AUTH -------------------------------------------------------------------------------------------------------------


def auth(plugin: str, payload: bytes) -> bytes:
    """Return a V3 AUTH."""
    message = wire.AuthMessage(authPluginName=plugin, payload=payload)
    return request(wire.AUTH, authRequest=message).SerializeToString()


def serve(auth_: Authentication, task: Handed) -> tuple[wire.Response, int]:
    """Return the V3 response and the action."""
    auth_.serve(task)  # type: ignore[arg-type]
    ((body, action),) = task.answers
    return wire.Response.FromString(body), action


def test_v3_answers_copy_the_header() -> None:
    """The token is accepted; another plugin gets an error and may try again; a wrong token ends the connection."""
    auth_ = Authentication(TokenServer((TOKEN,)))
    for plugin, payload, status, action in (
        ("sasl", TOKEN, wire.EUA, policy.NOTHING),
        ("token", TOKEN, wire.EOK, policy.AUTHENTICATED),
        ("token", b"x", wire.EUA, policy.CLOSE),
    ):
        response, done = serve(auth_, Handed(auth(plugin, payload)))
        assert (response.status, done) == (status, action)
        assert (response.header.txnId, response.header.priority) == (77, 100)
        assert response.HasField("authResponse") == (status == wire.EOK)
    assert (auth_.accepted, auth_.rejected, auth_.sessions()) == (1, 1, 0)


def test_who_shares_a_name_is_taken_back_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """This holds for users beyond those who are counted individually, whichever came last."""
    monkeypatch.setattr(authentication, "USERS_MAX", 2)
    secrets = [f"token-{number}-of-enough-bytes" for number in range(6)]
    file = tmp_path / "tokens"

    def write(known: Sequence[str]) -> None:
        file.unlink(missing_ok=True)
        file.touch(0o600)
        file.write_text("\n".join(known))

    write(secrets)
    auth_ = Authentication(token_server(AuthSettings(token_file=str(file))))
    users = []
    for secret in secrets:
        task = Handed(auth("token", secret.encode()))
        assert serve(auth_, task)[1] == policy.AUTHENTICATED
        assert task.user is not None
        users.append(task.user)
    assert [row.name for row in auth_.users()] == ["others", "token:line-1", "token:line-2"]

    write([*secrets[:3], *secrets[4:]])
    assert auth_.refresh()
    assert [user.revoked for user in users] == [number == 3 for number in range(6)]
    again = Handed(auth("token", secrets[5].encode()))
    assert serve(auth_, again)[1] == policy.AUTHENTICATED
    assert again.user is users[5]
    assert serve(auth_, Handed(auth("token", secrets[3].encode())))[1] == policy.CLOSE
    assert auth_.users()[0].name == "others"


class Endless:
    """A provider that never finishes, and may return no token."""

    plugin_name = "endless"
    challenges = False

    def __init__(self, token: bytes | None) -> None:
        self.token = token

    def session(self, peer: str) -> "Endless":  # noqa: ARG002
        """Return itself: the provider is stateless."""
        return self

    def process(self, token: bytes) -> Outcome:  # noqa: ARG002
        """Ask for another message."""
        return Outcome(self.token)

    def upgraded(self, certificate: bytes | None) -> Outcome:
        """Accept any certificate."""
        if certificate == b"broken":
            raise AuthenticationFailed("cannot be parsed")
        return Outcome(principal="c") if certificate else Outcome(reason="no certificate")


def test_a_conversation_without_end_is_ended() -> None:
    """It ends after a number of messages, whatever the provider returns."""
    auth_ = Authentication(Endless(b"more"))
    for _ in range(authentication.MESSAGES_MAX):
        assert serve(auth_, Handed(auth("endless", b"")))[1] == policy.NOTHING
        assert auth_.sessions() == 1
    response, action = serve(auth_, Handed(auth("endless", b"")))
    assert (response.status, action) == (wire.EUA, policy.CLOSE)
    assert auth_.sessions() == 0


def test_a_provider_may_be_silent() -> None:
    """Nothing is sent then, and the session continues until its connection ends."""
    auth_ = Authentication(Endless(None))
    for protocol, frame in ((3, auth("endless", b"")), (2, b"\2\3\0\0\x0a\x07endless\x12\0")):
        task = Handed(frame, protocol)
        auth_.serve(task)  # type: ignore[arg-type]
        assert task.answers == [(b"", policy.NOTHING)]
    auth_.ended(Handed(b"", kind=policy.CLOSED))  # type: ignore[arg-type]
    assert auth_.sessions() == 0


@pytest.mark.parametrize(
    ("certificate", "action"),
    [(b"der", policy.AUTHENTICATED), (b"", policy.NOTHING), (b"broken", policy.CLOSE)],
)
def test_certificates_are_judged_when_they_are_shown(certificate: bytes, action: int) -> None:
    """The client is accepted, not accepted but still connected, or disconnected."""
    auth_ = Authentication(Endless(None))
    task = Handed(certificate, kind=policy.UPGRADED)
    auth_.upgraded(task)  # type: ignore[arg-type]
    assert task.answers == [(b"", action)]


@pytest.mark.parametrize("version", [0, 1, 2])
def test_v2_answers_echo_version_and_plugin(version: int) -> None:
    """The header of version 0 is the opcode alone."""
    header = bytes([version, 3, 0xFF, 0xFF]) if version else b"\0\0\0\3"
    message = wire.AuthMessage(authPluginName="token", payload=TOKEN).SerializeToString()
    task = Handed(header + message, 2)
    Authentication(TokenServer((TOKEN,))).serve(task)  # type: ignore[arg-type]
    ((body, action),) = task.answers
    assert body[:4] == (bytes([version, 3, 0, 0]) if version else b"\0\0\0\3")
    assert wire.AuthMessage.FromString(body[4:]).payload == b""
    assert action == policy.AUTHENTICATED


@pytest.mark.parametrize("body", [b"", b"\x0a\x07endless", b"\x12\x00", b"\x0a\x07endless\x12"])
def test_v2_messages_that_are_not_whole(body: bytes) -> None:
    """Name and payload are both required; a missing payload is not an empty one."""
    task = Handed(b"\2\3\0\0" + body, 2)
    Authentication(Endless(b"more")).serve(task)  # type: ignore[arg-type]
    assert task.answers == [(b"", policy.CLOSE)]


@given(st.binary(max_size=100))
def test_any_v2_message_is_answered_once(body: bytes) -> None:
    """Every message gets one answer, and nothing but the token is accepted."""
    auth_ = Authentication(TokenServer((TOKEN,)))
    task = Handed(b"\2\3\0\0" + body, 2)
    auth_.serve(task)  # type: ignore[arg-type]
    try:
        right = wire.AuthMessage.FromString(body).payload == TOKEN
    except DecodeError:
        right = False
    assert [action for _, action in task.answers] == [policy.AUTHENTICATED if right else policy.CLOSE]
