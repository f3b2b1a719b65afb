"""Test limits of the data port on real sockets: which peers are turned away, and what is logged.

Modules: server.addresses, server.accepting, server.expiry, server.rejections, server.limits, server.membership.
"""

import contextlib
import logging
import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from bookie.auth.token import TokenClient, TokenServer
from bookie.server.configuration.settings import NetworkSettings
from bookie.server.logs.rejections import report, spoken
from tests.hostile import v3
from tests.hostile.auth_frames import log_in
from tests.hostile.local import LocalBookie, local_bookie
from tests.hostile.peer import KEY, add, batch, entry_of, read
from tests.reference.wire_v2 import ADD, Request, encode_request

PAYLOAD = bytes(1000)
EVERYWHERE = "0.0.0.0"  # noqa: S104 - the warning about this address is tested


@contextlib.contextmanager
def from_address(bookie: LocalBookie, host: str) -> Iterator[socket.socket]:
    """Connect from the address `host`."""
    with socket.create_connection(bookie.address, timeout=30.0, source_address=(host, 0)) as sock:
        yield sock


def turned_away(sock: socket.socket) -> bool:
    """Return whether the other end closes without sending anything."""
    try:
        return sock.recv(1) == b""
    except ConnectionResetError:
        return True


def test_more_connections_of_one_address_than_allowed(tmp_path: Path) -> None:
    """An address over its limit is refused and others are served. A place that becomes free is used again."""
    with local_bookie(tmp_path, connections_per_address_max=3) as bookie:
        peers = [bookie.peer() for _ in range(3)]
        assert peers[0].ask(add(1, 7, PAYLOAD)).code == 0
        assert all(peer.ask(read(1, 7)).code == 0 for peer in peers)
        with from_address(bookie, "127.0.0.1") as refused:
            assert turned_away(refused)
        with from_address(bookie, "127.0.0.2") as other:
            other.sendall(struct.pack(">i", -1))
            assert turned_away(other)
        assert bookie.stat("refused_address") == 1
        assert bookie.stat("accepted") == 4
        peers.pop().close()
        served = False
        while not served:
            with bookie.peer() as again:
                again.send(read(1, 7))
                try:
                    served = again.answer().code == 0
                except (EOFError, ConnectionResetError):  # the bookie has not seen the end of the other connection yet
                    continue
        for peer in peers:
            peer.close()


def test_many_addresses(tmp_path: Path) -> None:
    """Each address is counted separately, and forgotten with its last connection."""
    with local_bookie(tmp_path, connections_per_address_max=1) as bookie:
        for turn in range(2):
            socks = []
            for host in range(1, 151):
                sock = socket.create_connection(bookie.address, 30.0, source_address=(f"127.0.{turn}.{host}", 0))
                sock.sendall(struct.pack(">iBBHqq", 20, 2, 2, 0, 1, 7))
                assert sock.recv(100)
                socks.append(sock)
            assert bookie.stat("connected_addresses") == 150
            for sock in socks:
                sock.sendall(struct.pack(">i", -1))
                assert turned_away(sock)
                sock.close()
        pause, deadline = threading.Event(), time.monotonic() + 60
        while bookie.stat("connected_addresses") and time.monotonic() < deadline:
            pause.wait(0.01)  # the peer sees the end before the bookie has counted it
        assert bookie.stat("connected_addresses") == 0
        assert bookie.stat("refused_address") == 0


def test_an_idle_connection_ends(tmp_path: Path) -> None:
    """An idle connection is closed; one that sends requests is not."""
    with local_bookie(tmp_path, idle_ms_max=300) as bookie, bookie.peer() as busy:
        assert busy.ask(add(1, 0)).code == 0
        with bookie.peer() as idle:
            idle.sock.setblocking(False)
            ended = False
            while not ended:
                assert busy.ask(read(1, 0)).code == 0
                try:
                    ended = idle.sock.recv(1) == b""
                except BlockingIOError:
                    continue
        assert bookie.stat("closed_idle") == 1
        assert busy.ask(read(1, 0)).code == 0


def test_by_default_an_address_has_a_quarter_of_all_connections(tmp_path: Path) -> None:
    """By default an address may have a quarter of all connections. One more is refused; other addresses are served."""
    shares = {total: NetworkSettings(connections_max=total).connections_of_address_max for total in (10, 80, 10_000)}
    assert shares == {10: 16, 80: 20, 10_000: 2500}
    assert NetworkSettings(connections_per_address_max=0).connections_of_address_max == 0
    assert NetworkSettings(connections_per_address_max=7).connections_of_address_max == 7
    with local_bookie(tmp_path, connections_per_address_max=-1, connections_max=80) as bookie, ExitStack() as stack:
        peers = [stack.enter_context(bookie.peer()) for _ in range(20)]
        assert [peer.ask(add(1, entry)).code for entry, peer in enumerate(peers)] == [0] * 20
        with from_address(bookie, "127.0.0.1") as refused:
            assert turned_away(refused)
        with from_address(bookie, "127.0.0.2") as other:
            other.sendall(encode_request(read(1, 0)))
            assert other.recv(1)
        assert bookie.stat("refused_address") == 1


def test_whoever_waits_for_an_answer_is_not_idle(tmp_path: Path) -> None:
    """A connection whose long poll waits is not closed, while connections that sent nothing are."""
    with local_bookie(tmp_path, idle_ms_max=200) as bookie, ExitStack() as stack:
        writer, polling = (stack.enter_context(bookie.peer()) for _ in range(2))
        assert writer.ask(add(1, 0)).code == 0
        v3.send(polling, v3.read3(1, -1, previousLAC=0, timeOut=600_000, flag=v3.PIGGYBACK))
        bookie.until("long_polls_waiting", lambda waiting: waiting == 1)
        for times in range(1, 4):
            with bookie.peer() as idle:
                idle.sock.setblocking(False)
                while bookie.stat("closed_idle") < times:
                    assert writer.ask(read(1, 0)).code == 0
        writer.send(
            Request(ADD, 2, key=KEY, body=entry_of(1, 1, lac=0)), Request(ADD, 2, key=KEY, body=entry_of(1, 2, lac=1))
        )
        assert v3.part(v3.answer(polling)).body == entry_of(1, 1, lac=0)
        assert [writer.answer().code for _ in range(2)] == [0, 0]


@pytest.mark.parametrize(
    ("host", "authenticates", "says"), [("127.0.0.1", False, 0), (EVERYWHERE, True, 0), (EVERYWHERE, False, 1)]
)
def test_a_door_open_to_everybody_is_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, host: str, authenticates: bool, says: int
) -> None:
    """A warning is logged once, if other machines can reach the data port and it needs no authentication."""
    provider = TokenServer((b"open",)) if authenticates else None
    with caplog.at_level(logging.INFO), local_bookie(tmp_path, provider=provider, host=host) as bookie:
        reported = [record for record in caplog.records if "the data port has no authentication" in record.message]
        assert len(reported) == says
        assert all((record.host, record.port) == bookie.address for record in reported)  # type: ignore[attr-defined]


def test_time_to_authenticate(tmp_path: Path) -> None:
    """A connection that does not authenticate in time is closed, whatever it sends; one that does is kept."""
    provider = TokenServer((b"open",))
    with local_bookie(tmp_path, provider=provider, unauthenticated_ms_max=300) as bookie, bookie.peer() as known:
        log_in(known, 2, "token", TokenClient(b"open").session(""))
        assert known.ask(add(1, 0)).code == 0
        with bookie.peer() as unknown:
            refused = 0
            with contextlib.suppress(EOFError, ConnectionError):
                while known.ask(read(1, 0)).code == 0:
                    refused += unknown.ask(read(1, 0)).code == 102
            assert refused > 0
        assert bookie.stat("closed_unauthenticated") == 1
        assert known.ask(read(1, 0)).code == 0


def test_one_who_never_reads_is_idle(tmp_path: Path) -> None:
    """A connection that does not read its answers is closed as idle."""
    limits: dict[str, Any] = {"output_high_bytes": 100_000, "output_low_bytes": 20_000, "idle_ms_max": 300}
    with local_bookie(tmp_path, **limits) as bookie, bookie.peer() as busy:
        busy.send(*(add(1, entry, PAYLOAD) for entry in range(200)))
        assert {busy.answer().code for _ in range(200)} == {0}
        with bookie.peer(receive_bytes=4096) as deaf:
            deaf.send(*(batch(1, 0, count=200, size=1 << 20) for _ in range(50)))
            while bookie.stat("closed_idle") == 0:
                assert busy.ask(read(1, 0)).code == 0
        assert bookie.stat("closed_idle") == 1


def test_the_log_hears_of_it(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Many broken frames from one address are all counted, in a few log lines that contain none of their bytes."""
    times = 60
    with caplog.at_level(logging.WARNING), local_bookie(tmp_path, connections_max=1) as bookie:
        for _ in range(times):
            with bookie.peer() as peer:
                peer.sock.sendall(struct.pack(">i", -5))
                assert peer.closed()
        assert bookie.stat("broken_frames") + bookie.stat("refused") == times
    rows = [record for record in caplog.records if record.getMessage() == "turned away a peer"]
    assert sum(row.__dict__["times"] for row in rows) == times
    assert {row.__dict__["peer"] for row in rows} == {"127.0.0.1"}
    assert len(rows) < times


def test_rejections_are_summed_up() -> None:
    """The report has one row for each address, with its reasons, most frequent first."""
    four, six = spoken(bytes(10) + b"\xff\xff" + bytes([10, 0, 0, 9])), spoken(bytes(15) + b"\x01")
    rows = report([(four, "late", 3), (six, "idle", 1), (four, "broken", 5), (spoken(bytes(16)), "many", 7)])
    assert rows == [
        {"peer": "10.0.0.9", "times": 8, "reason": "broken; late"},
        {"peer": "::1", "times": 1, "reason": "idle"},
        {"peer": "several", "times": 7, "reason": "many"},
    ]


@pytest.mark.parametrize(("linger_s", "end"), [(-1, EOFError), (0, ConnectionResetError)])
def test_linger(tmp_path: Path, linger_s: int, end: type[Exception]) -> None:
    """With a linger of 0, closing is a reset; without one it is an orderly end."""
    with local_bookie(tmp_path, linger_s=linger_s) as bookie, bookie.peer() as peer:
        peer.sock.sendall(struct.pack(">i", -1))
        with pytest.raises(end):
            peer.answer()


def test_nobody_waits_while_a_connection_lingers(tmp_path: Path) -> None:
    """With a linger time, closing the connection of a peer that does not read delays no other of its loop."""
    with local_bookie(tmp_path, linger_s=3600, io_threads=1) as bookie, bookie.peer() as other:
        other.sock.settimeout(20.0)
        assert {other.ask(add(1, entry, PAYLOAD)).code for entry in range(200)} == {0}
        with bookie.peer(receive_bytes=4096) as deaf:
            deaf.send(batch(1, 0, count=200))
            deaf.sock.sendall(struct.pack(">i", -1))
            bookie.until("broken_frames", lambda count: count == 1)
            assert other.ask(read(1, 0)).code == 0


def test_every_byte_out_is_counted(tmp_path: Path) -> None:
    """Bytes are counted even if they are sent in the middle of a round because too many are waiting."""
    limits: dict[str, Any] = {"output_high_bytes": 100_000, "output_low_bytes": 20_000}
    with local_bookie(tmp_path, **limits) as bookie, bookie.peer() as peer:
        peer.send(*(add(1, entry, PAYLOAD) for entry in range(200)))
        assert {peer.answer().code for _ in range(200)} == {0}
        peer.send(*(batch(1, 0, count=200) for _ in range(20)))
        bodies = [peer.answer().body for _ in range(20)]
        received = 200 * 28 + sum(36 + len(body) for body in bodies)
        with bookie.peer() as other:
            assert other.ask(read(1, 300)).code == 2
        bookie.until("bytes_out", lambda count: count >= received + 28)
        assert bookie.stat("bytes_out") == received + 28
        with bookie.peer() as modern:
            v3.send(modern, *(v3.batch3(1, 0, maxCount=200) for _ in range(20)))
            for _ in range(20):
                (size,) = struct.unpack(">i", modern.take(4))
                received += 4 + len(modern.take(size))
        bookie.until("bytes_out", lambda count: count >= received + 28)
        assert bookie.stat("bytes_out") == received + 28
