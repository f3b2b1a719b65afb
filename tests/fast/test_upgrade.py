"""Test upgrades of a connection to TLS, and peers that do it wrong: nothing of them remains, and others do not notice.

Modules: base.tls, server.upgrade, server.intake, server.connection.
"""

import contextlib
import ctypes
import os
import random
import socket
import ssl
import struct
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from bookie.pb import wire_pb2 as pb
from tests.fixtures.certificates import Authority, Party
from tests.hostile.local import LocalBookie, local_bookie
from tests.hostile.peer import TIMEOUT_S, Peer, add, batch, entry_of, read, records
from tests.hostile.tls_peer import ACCEPTED, REFUSED, START_TLS, TlsPeer, client_context, settings_of
from tests.reference.wire_v2 import encode_request

PAYLOAD = bytes(range(250)) * 4
ENTRIES = 500
ROOT = Path(__file__).resolve().parents[2]
CLIENT_HELLO_START = bytes.fromhex("16030100c8010000c40303")


@pytest.fixture(scope="module")
def ca(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """Return the authority that issues the bookie's certificate."""
    return Authority(tmp_path_factory.mktemp("ca"))


@pytest.fixture(scope="module")
def party(ca: Authority) -> Party:
    """Issue the bookie's certificate."""
    return ca.issue("bookie", hosts=["127.0.0.1"])


@pytest.fixture
def bookie(tmp_path: Path, party: Party) -> Iterator[LocalBookie]:
    """Run a bookie with small limits and a ledger 1."""
    limits: dict[str, Any] = {"output_high_bytes": 400_000, "output_low_bytes": 100_000, "output_bytes_max": 4 << 20}
    room: dict[str, Any] = {"write_cache_bytes": 32 << 20, "buffer_bytes": 16 << 20}
    with local_bookie(tmp_path, tls=settings_of(party), **limits, **room) as bookie:
        with bookie.peer() as peer:
            peer.send(*(add(1, entry, PAYLOAD) for entry in range(ENTRIES)))
            assert {peer.answer().code for _ in range(ENTRIES)} == {0}
        yield bookie
        assert bookie.stat("tls_connections") == bookie.stat("tls_handshaking") == 0


@pytest.fixture
def peer(bookie: LocalBookie, ca: Authority) -> Iterator[TlsPeer]:
    """Open an encrypted connection."""
    with TlsPeer(bookie.address, client_context(ca)) as peer:
        yield peer
    settled(bookie)


def settled(bookie: LocalBookie, **counts: int) -> None:
    """Wait until the bookie has seen the end of all encrypted connections; each round of a loop closes one."""
    with bookie.peer() as other:
        while bookie.stat("tls_connections") or any(bookie.stat(name) < count for name, count in counts.items()):
            other.ask(read(1, 7))


def served(peer: Peer) -> bool:
    """Return whether a read is answered with the right bytes."""
    return peer.ask(read(1, 7)).body == entry_of(1, 7, PAYLOAD)


def test_everything_passes(peer: TlsPeer) -> None:
    """B21: adds, reads, batches and refusals work as on an unencrypted connection."""
    assert served(peer)
    assert peer.ask(add(2, 0, b"x" * 70_000)).code == 0
    assert peer.ask(read(2, 0)).body == entry_of(2, 0, b"x" * 70_000)
    assert peer.ask(read(2, 1)).code == 2
    peer.send(*(batch(1, start, count=60, request_id=start) for start in range(0, ENTRIES - 60, 7)))
    for start in range(0, ENTRIES - 60, 7):
        answer = peer.answer()
        assert answer.request_id == start
        assert records(answer.body) == [entry_of(1, start + k, PAYLOAD) for k in range(60)]


def test_large_frames_both_ways(peer: TlsPeer) -> None:
    """B21: frames longer than any buffer, in TLS records that end anywhere, work among short ones."""
    seeded_random = random.Random(3)
    payloads = [seeded_random.randbytes(size) for size in (3 << 20, 10, 1 << 18, (1 << 18) - 60, 0, 1 << 20)]
    stream = b"".join(encode_request(add(3, entry, payload)) for entry, payload in enumerate(payloads))
    at = 0
    while at < len(stream):
        size = seeded_random.choice((1, 5, 4000, 16384, 100_000))
        peer.sock.sendall(stream[at : at + size])
        at += size
    assert [peer.answer().code for _ in payloads] == [0] * len(payloads)
    for entry, payload in enumerate(payloads):
        assert peer.ask(read(3, entry)).body == entry_of(3, entry, payload)


def test_a_peer_that_does_not_read_is_paused(bookie: LocalBookie, ca: Authority) -> None:
    """S6: the output of a slow reader is bounded. When it reads, everything arrives in order."""
    with TlsPeer(bookie.address, client_context(ca), receive_bytes=4096) as slow, bookie.peer() as other:
        wanted = [start for start in range(0, ENTRIES - 60, 30) for _ in range(20)]
        slow.send(*(batch(1, start, count=60, request_id=start) for start in wanted))
        assert all(served(other) for _ in range(100))
        assert bookie.stat("read_entries") < 60 * len(wanted)
        assert bookie.stat("output_buffer_bytes") <= 4 << 20
        for start in wanted:
            answer = slow.answer()
            assert (answer.code, answer.request_id) == (0, start)
            assert records(answer.body) == [entry_of(1, start + k, PAYLOAD) for k in range(60)]
    settled(bookie)
    bookie.until("output_buffer_bytes", lambda count: count == 0)


def test_not_configured(tmp_path: Path) -> None:
    """Golden vectors 30 and 32: START_TLS is refused, and the connection continues unencrypted."""
    with local_bookie(tmp_path) as bookie, bookie.peer() as peer:
        peer.sock.sendall(START_TLS)
        assert peer.take(len(REFUSED)) == REFUSED
        assert peer.ask(add(1, 7, PAYLOAD)).code == 0
        assert served(peer)


def test_not_twice(peer: TlsPeer) -> None:
    """Inside TLS, START_TLS is refused as if TLS were not configured."""
    peer.sock.sendall(START_TLS)
    assert peer.take(len(REFUSED)) == REFUSED
    assert served(peer)


@pytest.mark.parametrize("behind", [CLIENT_HELLO_START, encode_request(read(1, 7)), b"\x16", START_TLS])
def test_nothing_in_clear_behind_it(bookie: LocalBookie, behind: bytes) -> None:
    """Bytes sent after START_TLS, before its response was received, close the connection and are not served."""
    reads = bookie.stat("reads")
    with bookie.peer() as peer, bookie.peer() as other:
        peer.sock.sendall(START_TLS + behind)
        assert not peer.take_all().startswith(ACCEPTED + b"\0")
        assert bookie.stat("reads") == reads
        assert served(other)
    assert bookie.stat("upgrades") == 0


def test_answers_in_clear_come_first(bookie: LocalBookie, ca: Authority) -> None:
    """Requests before START_TLS in the same segment are answered first, unencrypted."""
    with bookie.peer() as peer:
        header = pb.BKPacketHeader(version=pb.VERSION_THREE, operation=pb.READ_ENTRY, txnId=5)
        request = pb.Request(header=header, readRequest=pb.ReadRequest(ledgerId=1, entryId=7)).SerializeToString()
        peer.sock.sendall((struct.pack(">i", len(request)) + request) * 3 + START_TLS)
        for _ in range(3):
            (size,) = struct.unpack(">i", peer.take(4))
            assert pb.Response.FromString(peer.take(size)).readResponse.body == entry_of(1, 7, PAYLOAD)
        assert peer.take(len(ACCEPTED)) == ACCEPTED
        peer.sock = client_context(ca).wrap_socket(peer.sock, server_hostname="127.0.0.1")
        assert served(peer)
    settled(bookie)


def test_not_after_v2(bookie: LocalBookie) -> None:
    """START_TLS after V2 requests closes the connection, as upstream does."""
    with bookie.peer() as peer:
        assert served(peer)
        peer.sock.sendall(START_TLS)
        assert peer.closed()
    assert bookie.stat("upgrades") == 0


def test_garbage_for_a_handshake(bookie: LocalBookie) -> None:
    """Bytes that are no TLS, invalid records and plain frames end with an alert or nothing, and a closed connection."""
    seeded_random = random.Random(11)
    tries = [
        seeded_random.randbytes(300),
        b"\x16\x03\x01\xff\xff" + bytes(200),
        encode_request(read(1, 7)) * 5,
        CLIENT_HELLO_START + seeded_random.randbytes(194),
        b"\x15\x03\x03\x00\x02\x02\x28",
    ]
    with bookie.peer() as other:
        for garbage in tries:
            with bookie.peer() as peer:
                peer.sock.sendall(START_TLS)
                assert peer.take(len(ACCEPTED)) == ACCEPTED
                peer.sock.sendall(garbage)
                assert entry_of(1, 7, PAYLOAD)[:50] not in peer.take_all()
            assert served(other)
    settled(bookie, tls_handshakes_failed=len(tries))
    assert bookie.stat("tls_handshakes") == 0


def test_half_a_handshake_and_gone(bookie: LocalBookie, ca: Authority) -> None:
    """After a whole or partial ClientHello and a close, a shutdown or a reset, nothing remains."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    shy = client_context(ca).wrap_bio(incoming, outgoing, server_hostname="127.0.0.1")
    with contextlib.suppress(ssl.SSLWantReadError):
        shy.do_handshake()
    hello = outgoing.read()
    tries = 0
    for cut in (0, 1, 5, len(hello) // 2, len(hello)):
        for leave in ("close", "abort", "shutdown"):
            with bookie.peer() as peer:
                peer.sock.sendall(START_TLS)
                assert peer.take(len(ACCEPTED)) == ACCEPTED
                peer.sock.sendall(hello[:cut])
                if leave == "shutdown":
                    peer.sock.shutdown(socket.SHUT_WR)
                elif leave == "abort":
                    peer.abort()
            tries += 1
    settled(bookie, tls_handshakes_failed=tries)
    assert bookie.stat("tls_handshaking") == 0


def test_slow_handshakes(tmp_path: Path, ca: Authority, party: Party) -> None:
    """Two hundred handshakes that never finish delay no one else, and are closed after the timeout."""
    settings = settings_of(party, handshake_timeout_ms=2000)  # an ordinary handshake takes less, even on a slow machine
    with local_bookie(tmp_path, tls=settings) as bookie, bookie.peer() as plain, contextlib.ExitStack() as stack:
        assert plain.ask(add(1, 7, PAYLOAD)).code == 0
        shy = [stack.enter_context(bookie.peer()) for _ in range(200)]
        for number, peer in enumerate(shy):
            peer.sock.sendall(START_TLS)
            assert peer.take(len(ACCEPTED)) == ACCEPTED
            peer.sock.sendall(CLIENT_HELLO_START[: number % len(CLIENT_HELLO_START)])
            assert served(plain)
        assert all(peer.take_all() == b"" for peer in shy)
        with TlsPeer(bookie.address, client_context(ca)) as good:
            assert served(good)
        settled(bookie, tls_handshakes_failed=200)


def test_too_many_handshakes(tmp_path: Path, ca: Authority, party: Party) -> None:
    """Handshakes above the limit are closed. When another one finishes or is gone, a new one is accepted."""
    with local_bookie(tmp_path, tls=settings_of(party, handshakes_max=3)) as bookie, contextlib.ExitStack() as stack:
        shy = [stack.enter_context(bookie.peer()) for _ in range(3)]
        for peer in shy:
            peer.sock.sendall(START_TLS)
            assert peer.take(len(ACCEPTED)) == ACCEPTED
        settled_at(bookie, "tls_handshaking", 3)
        with pytest.raises((ssl.SSLError, ConnectionError)):
            TlsPeer(bookie.address, client_context(ca))
        shy.pop().close()
        settled_at(bookie, "tls_handshaking", 2)
        with TlsPeer(bookie.address, client_context(ca)) as good:
            assert good.ask(add(1, 7, PAYLOAD)).code == 0
        for peer in shy:
            peer.close()
        settled(bookie)


def test_too_many_handshakes_of_an_address(tmp_path: Path, ca: Authority, party: Party) -> None:
    """An address that opens handshakes without finishing them reaches its own limit, and does not shut out others."""
    tls = settings_of(party, handshakes_max=1000, handshakes_per_address_max=3)
    with local_bookie(tmp_path, tls=tls) as bookie, contextlib.ExitStack() as stack:
        shy = []
        for _ in range(5):
            sock = stack.enter_context(socket.create_connection(bookie.address, TIMEOUT_S, ("127.0.0.9", 0)))
            sock.sendall(START_TLS)
            shy.append(sock)
        settled_at(bookie, "turned_away_21", 2)
        assert bookie.stat("tls_handshaking") == 3
        for _ in range(5):
            with TlsPeer(bookie.address, client_context(ca)) as good:
                assert good.ask(add(1, 7, PAYLOAD)).code == 0
        for sock in shy:
            sock.close()
        settled_at(bookie, "tls_handshaking", 0)
        again = stack.enter_context(socket.create_connection(bookie.address, TIMEOUT_S, ("127.0.0.9", 0)))
        again.sendall(START_TLS)
        assert again.recv(len(ACCEPTED), socket.MSG_WAITALL) == ACCEPTED
        with client_context(ca).wrap_socket(again, server_hostname="127.0.0.1") as good:
            good.sendall(encode_request(read(1, 7)))
            assert good.recv(4)
        assert bookie.stat("turned_away_21") == 2
        settled(bookie, tls_handshakes_failed=5)


def settled_at(bookie: LocalBookie, name: str, value: int) -> None:
    """Wait until a counter has this value; each round sends a request to the bookie."""
    with bookie.peer() as other:
        while bookie.stat(name) != value:
            assert other.ask(read(99, 0)).code == 1


def test_two_hundred_at_once(bookie: LocalBookie, ca: Authority) -> None:
    """Parallel handshakes all succeed while an unencrypted connection is served."""

    def go(_: int) -> bool:
        with TlsPeer(bookie.address, client_context(ca)) as peer:
            return served(peer)

    with ThreadPoolExecutor(20) as threads, bookie.peer() as plain:
        jobs = [threads.submit(go, number) for number in range(200)]
        while not all(job.done() for job in jobs):
            assert served(plain)
        assert all(job.result() for job in jobs)
    settled(bookie)
    assert (bookie.stat("tls_handshakes"), bookie.stat("tls_handshakes_failed")) == (200, 0)


def test_without_the_gil(bookie: LocalBookie, ca: Authority) -> None:
    """While this thread holds the GIL, another process connects with TLS, adds and reads."""
    program = f"""
import ssl
from tests.hostile.peer import add, batch
from tests.hostile.tls_peer import TlsPeer
context = ssl.create_default_context(cafile={str(ca.certificate)!r})
with TlsPeer({bookie.address!r}, context) as peer:
    assert peer.ask(add(2, 0, bytes(1000))).code == 0
    assert len(peer.ask(batch(1, 0, count=100)).body) > 100_000
"""
    client = subprocess.Popen([sys.executable, "-c", program], cwd=ROOT)
    status = ctypes.c_int(-1)
    # PyDLL calls keep the GIL: if the bookie needed it on the way, this would never return
    ctypes.PyDLL(None).waitpid(client.pid, ctypes.byref(status), 0)
    client.returncode = os.waitstatus_to_exitcode(status.value)
    assert client.returncode == 0
    settled(bookie)


def test_client_certificates(tmp_path: Path, ca: Authority, party: Party) -> None:
    """If client certificates are required, those of the right authority are accepted; expired ones are not."""
    other = Authority(tmp_path / "other", "another authority")
    bad = [None, other.issue("client"), ca.issue("late", age_days=30)]
    with local_bookie(tmp_path, tls=settings_of(party, trust=ca.certificate)) as bookie:
        with TlsPeer(bookie.address, client_context(ca, ca.issue("client"))) as peer:
            assert peer.ask(add(1, 7, PAYLOAD)).code == 0
            assert served(peer)
        for shown in bad:
            # with TLSv1.3 the client learns of it when it reads
            with (
                pytest.raises((ssl.SSLError, ConnectionError, EOFError)),
                TlsPeer(bookie.address, client_context(ca, shown)) as peer,
            ):
                peer.ask(read(1, 7))
        settled(bookie, tls_handshakes_failed=len(bad))


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_versions(tmp_path: Path, ca: Authority, party: Party, version: ssl.TLSVersion) -> None:
    """Both versions are spoken unless configured otherwise. Sessions are never resumed, so each one is checked anew."""
    context = client_context(ca)
    context.minimum_version = context.maximum_version = version
    name = version.name.replace("_", ".", 1)
    with local_bookie(tmp_path, tls=settings_of(party)) as bookie:
        with TlsPeer(bookie.address, context) as peer:
            assert peer.ask(add(1, 7, PAYLOAD)).code == 0
            assert isinstance(peer.sock, ssl.SSLSocket)
            assert peer.sock.version() == name
            session = peer.sock.session
        with bookie.peer() as again:
            again.sock.sendall(START_TLS)
            assert again.take(len(ACCEPTED)) == ACCEPTED
            again.sock = context.wrap_socket(again.sock, server_hostname="127.0.0.1", session=session)
            assert served(again)
            assert isinstance(again.sock, ssl.SSLSocket)
            assert not again.sock.session_reused
        settled(bookie)
    only_other = "TLSv1.2" if version is ssl.TLSVersion.TLSv1_3 else "TLSv1.3"
    with local_bookie(tmp_path / "other", tls=settings_of(party, protocols=only_other)) as bookie:
        with pytest.raises((ssl.SSLError, ConnectionError)):
            TlsPeer(bookie.address, context)
        settled(bookie, tls_handshakes_failed=1)


def test_good_bye(bookie: LocalBookie, ca: Authority) -> None:
    """A close_notify is answered and the connection closed. A modified record closes the connection, too."""
    with TlsPeer(bookie.address, client_context(ca)) as peer:
        assert isinstance(peer.sock, ssl.SSLSocket)
        assert served(peer)
        peer.sock = peer.sock.unwrap()
        assert peer.closed()
    with TlsPeer(bookie.address, client_context(ca)) as peer:
        assert isinstance(peer.sock, ssl.SSLSocket)
        assert served(peer)
        raw = socket.socket(fileno=peer.sock.detach())
        with raw:
            raw.settimeout(TIMEOUT_S)
            raw.sendall(struct.pack(">BHH", 23, 0x0303, 40) + bytes(40))
            while raw.recv(1000):
                pass
    settled(bookie)


def test_stop_while_connections_change_over(tmp_path: Path, party: Party) -> None:
    """A bookie that stops during handshakes frees all of them."""
    for _ in range(5):
        with local_bookie(tmp_path, tls=settings_of(party)) as bookie, contextlib.ExitStack() as stack:
            peers = [stack.enter_context(bookie.peer()) for _ in range(20)]
            for peer in peers:
                peer.sock.sendall(START_TLS)
        assert bookie.port.tls is not None
        assert bookie.port.tls.server_context.stats()["tls_connections"] == 0
