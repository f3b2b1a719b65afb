"""Test how an I/O loop handles frames: splitting and refusing them, and pausing, resuming and closing connections.

Modules: server.io_loop, server.intake, server.loop_state, server.connection, server.membership, server.interest,
server.output, server.replies, server.dispatch, base.epoll, base.waker.
"""

import contextlib
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.hostile.local import LocalBookie, local_bookie
from tests.hostile.peer import Peer, add, batch, entry_of, read, records
from tests.reference.wire_v2 import Request, encode_request

FRAME_MAX = 70_000
PAYLOAD = bytes(range(250)) * 4
ENTRIES = 2000


@pytest.fixture
def bookie(tmp_path: Path) -> Iterator[LocalBookie]:
    """Run a bookie with small limits, and entries of about 1 KiB in ledger 1."""
    limits: dict[str, Any] = {"output_high_bytes": 100_000, "output_low_bytes": 20_000, "output_bytes_max": 4 << 20}
    with local_bookie(tmp_path, frame_bytes_max=FRAME_MAX, write_cache_bytes=16 << 20, **limits) as bookie:
        with bookie.peer() as peer:
            peer.send(*(add(1, entry, PAYLOAD) for entry in range(ENTRIES)))
            assert {peer.answer().code for _ in range(ENTRIES)} == {0}
        yield bookie


@pytest.fixture
def peer(bookie: LocalBookie) -> Iterator[Peer]:
    """Open a connection."""
    with bookie.peer() as peer:
        yield peer


def served(peer: Peer) -> bool:
    """Return whether a read is answered with the right bytes."""
    return peer.ask(read(1, 7)).body == entry_of(1, 7, PAYLOAD)


@pytest.mark.parametrize("length", [-1, -(2**31), 2**31 - 1, FRAME_MAX, FRAME_MAX - 3])
def test_an_impossible_length_ends_the_connection(bookie: LocalBookie, peer: Peer, length: int) -> None:
    """S5: the connection is closed as soon as the length is there, and other connections are not affected."""
    with bookie.peer() as other:
        assert served(peer)
        peer.sock.sendall(struct.pack(">i", length))
        assert peer.closed()
        assert served(other)


@pytest.mark.parametrize("size", [0, 3, 4, 19])
def test_a_frame_too_short_for_its_operation_ends_the_connection(bookie: LocalBookie, peer: Peer, size: int) -> None:
    """Truncated reads, adds and batch reads, and an empty frame, close the connection."""
    for request in (read(1, 7), add(1, 0), batch(1, 0)):
        with bookie.peer() as one:
            one.sock.sendall(struct.pack(">i", size) + encode_request(request)[4 : 4 + size] + bytes(10_000))
            assert one.closed()
    assert served(peer)


@pytest.mark.parametrize("op", [0, 4, 5, 6, 8, 127, 255])
def test_an_unknown_operation_ends_the_connection(bookie: LocalBookie, peer: Peer, op: int) -> None:
    """Operations without a V2 form close the connection, even if they have a number."""
    with bookie.peer() as other:
        peer.sock.sendall(struct.pack(">iBBH", 64, 2, op, 0) + bytes(60))
        assert peer.closed()
        assert served(other)


def test_the_longest_frame(peer: Peer) -> None:
    """A frame exactly at the limit is served, and one byte more closes the connection."""
    overhead = 4 + 24 + 32
    data = bytes(FRAME_MAX - overhead)
    assert peer.ask(add(2, 0, data)).code == 0
    assert peer.ask(read(2, 0)).body == entry_of(2, 0, data)
    assert records(peer.ask(batch(2, 0)).body) == [entry_of(2, 0, data)]
    peer.send(add(2, 1, data + b"x"))
    assert peer.closed()


def test_a_frame_longer_than_the_buffer_of_the_loop(tmp_path: Path) -> None:
    """Frames of several megabytes arrive in pieces, with short frames between them."""
    sizes = [1 << 20, 10, (1 << 18) - 64, 1 << 18, (1 << 18) + 1, 3 << 20, 0]
    with local_bookie(tmp_path, write_cache_bytes=32 << 20, buffer_bytes=16 << 20) as bookie, bookie.peer() as peer:
        requests = [add(1, number, bytes([number]) * size) for number, size in enumerate(sizes)]
        peer.send(*requests)
        assert [peer.answer().code for _ in sizes] == [0] * len(sizes)
        for number, size in enumerate(sizes):
            assert peer.ask(read(1, number)).body == entry_of(1, number, bytes([number]) * size)
        assert bookie.stat("input_buffer_bytes") == 0


def test_a_peer_that_does_not_read_is_paused(bookie: LocalBookie) -> None:
    """The requests of a slow reader wait and its output is bounded. When it reads, everything arrives in order."""
    with bookie.peer(receive_bytes=4096) as slow, bookie.peer() as other:
        wanted = [start for start in range(0, ENTRIES - 60, 30) for _ in range(6)]
        slow.send(*(batch(1, start, count=60, request_id=start) for start in wanted))
        assert all(served(other) for _ in range(100))
        assert bookie.stat("read_entries") < 60 * len(wanted)
        assert bookie.stat("output_buffer_bytes") <= 4 << 20
        for start in wanted:
            answer = slow.answer()
            assert (answer.code, answer.request_id) == (0, start)
            assert records(answer.body) == [entry_of(1, start + k, PAYLOAD) for k in range(60)]


@pytest.mark.parametrize("bad", [b"\xff\xff\xff\xff", struct.pack(">iBBH", 4, 2, 6, 0), struct.pack(">i", 0)])
def test_a_broken_frame_behind_a_pause(bookie: LocalBookie, bad: bytes) -> None:
    """If what was held back during a pause contains a broken frame, only this connection is closed."""
    for _ in range(3):
        with bookie.peer(receive_bytes=4096) as slow, bookie.peer() as other:
            good = [encode_request(batch(1, 0, count=60)) for _ in range(100)]
            slow.sock.sendall(b"".join(good) + bad)
            assert served(other)
            with contextlib.suppress(EOFError, ConnectionResetError):
                while True:
                    assert slow.answer().code == 0
            assert served(other)


def test_pipelined_then_gone(bookie: LocalBookie) -> None:
    """After requests of every kind and a close, a shutdown or a reset, other connections are served."""
    requests: list[Request] = [add(9, entry, PAYLOAD) for entry in range(50)]
    requests += [read(1, entry) for entry in range(50)] + [batch(1, 0, count=60)] * 10
    with bookie.peer() as other:
        for leave in ("close", "abort", "shutdown") * 10:
            with bookie.peer() as peer:
                peer.send(*requests)
                if leave == "shutdown":
                    peer.sock.shutdown(1)
                elif leave == "abort":
                    peer.abort()
            assert served(other)
        assert records(other.ask(batch(9, 0, count=60)).body)[:1] == [entry_of(9, 0, PAYLOAD)]


def test_one_byte_at_a_time(bookie: LocalBookie) -> None:
    """Thirty connections send one frame each, a byte at a time, while another connection is served."""
    request = encode_request(add(3, 1, b"slow"))
    slow = [bookie.peer() for _ in range(30)]
    with bookie.peer() as other:
        for at in range(len(request)):
            for peer in slow:
                peer.sock.sendall(request[at : at + 1])
            assert served(other)
        for peer in slow:
            assert peer.answer().code == 0
            peer.close()


def test_more_connections_than_allowed(tmp_path: Path) -> None:
    """Connections above the limit are closed at once, and a place that becomes free is used again."""
    with local_bookie(tmp_path, connections_max=20) as bookie:
        peers = [bookie.peer() for _ in range(20)]
        assert peers[0].ask(add(1, 7, PAYLOAD)).code == 0
        assert all(served(peer) for peer in peers)
        for _ in range(5):
            with bookie.peer() as refused:
                assert refused.closed()
        assert bookie.stat("refused") == 5
        peers.pop().close()
        assert served(peers[0])
        while True:
            with bookie.peer() as again:
                again.send(read(1, 7))
                try:
                    assert again.answer().code == 0
                    break
                except (EOFError, ConnectionResetError):  # the bookie has not seen the end of the other connection yet
                    continue
        for peer in peers:
            peer.close()
