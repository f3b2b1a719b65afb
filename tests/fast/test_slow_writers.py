"""Test peers whose frames never end, when these take all memory for input.

Modules: server.slow_writers, server.intake.
"""

import contextlib
import select
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from bookie.storage.settings import MIB
from tests.hostile.local import LocalBookie, local_bookie
from tests.hostile.peer import Peer, add, entry_of, read
from tests.reference.wire_v2 import encode_request

LONG = bytes(4 * MIB - 100)
DATA = bytes(range(256)) * 4096
OLD_S = 1.5
"""After a second, an unfinished frame may be ended in favour of others."""
WAIT_S = 30.0


@pytest.fixture(params=[1, 2])
def bookie(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[LocalBookie]:
    """Run a bookie with room for two long frames and one or two loops."""
    room: dict[str, Any] = {"write_cache_bytes": 64 * MIB, "buffer_bytes": 32 * MIB}
    with local_bookie(tmp_path, input_bytes_max=8 * MIB, io_threads=request.param, **room) as bookie:
        yield bookie


def fill_up(bookie: LocalBookie, others: ExitStack) -> list[Peer]:
    """Let two peers on the last loop send long frames without their last byte; return them once these are old."""
    loops = bookie.port.settings.io_threads
    peers = [others.enter_context(bookie.peer()) for _ in range(2 * loops)]
    hogs = peers[loops - 1 :: loops]
    for entry, hog in enumerate(hogs):
        hog.sock.sendall(encode_request(add(7, entry, LONG))[:-1])
    bookie.until("input_buffer_bytes", lambda count: count >= 2 * len(LONG))
    old = time.monotonic() + OLD_S
    with bookie.peer() as busy:
        while time.monotonic() < old:
            assert busy.ask(read(1, 0)).code != 0
    return hogs


def in_pieces(bookie: LocalBookie, peer: Peer, entry: int) -> int:
    """Add an entry in two pieces, the second of which follows when the bookie has the first; return the code."""
    frame = encode_request(add(1, entry, DATA))
    wanted, deadline = bookie.stat("bytes_in") + len(frame) // 2, time.monotonic() + WAIT_S
    peer.sock.sendall(frame[: len(frame) // 2])
    while bookie.stat("bytes_in") < wanted and not select.select([peer.sock], [], [], 0.001)[0]:
        assert time.monotonic() < deadline
    peer.sock.sendall(frame[len(frame) // 2 :])
    return peer.answer().code


def test_frames_that_never_end_make_room_for_others(bookie: LocalBookie) -> None:
    """Peers with unfinished frames in all memory for input are closed for others, one at a time, wherever they are."""
    with ExitStack() as others:
        hogs = fill_up(bookie, others)
        deadline, code = time.monotonic() + WAIT_S, None
        while code is None:
            assert time.monotonic() < deadline, "nobody else gets a long frame through"
            with contextlib.suppress(EOFError, ConnectionError), bookie.peer() as peer:
                code = in_pieces(bookie, peer, 0)
        assert code == 0
        with bookie.peer() as peer:
            assert peer.ask(read(1, 0)).body == entry_of(1, 0, DATA)
            assert [in_pieces(bookie, peer, entry) for entry in range(1, 5)] == [0] * 4
        assert hogs[0].closed()
        hogs[1].sock.sendall(b"x")
        assert hogs[1].answer().code == 0


def test_who_needs_no_more_than_is_left_disturbs_nobody(bookie: LocalBookie) -> None:
    """Unfinished frames stay, however old, while there is room for others."""
    with ExitStack() as others:
        hogs = fill_up(bookie, others)
        hogs.pop().close()
        with bookie.peer() as peer:
            bookie.until("input_buffer_bytes", lambda count: count <= 5 * MIB)
            assert [in_pieces(bookie, peer, entry) for entry in range(5)] == [0] * 5
        hogs[0].sock.sendall(b"x")
        assert hogs[0].answer().code == 0
        assert bookie.stat("closed_by_limit") == 0
