"""A bookie process against hostile clients: it stays within its budgets and serves the others.

What others get is checked byte by byte; memory is measured by the kernel.
"""

import contextlib
import os
import random
import re
import resource
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bookie.storage.settings import MIB
from tests.fixtures.bookies import BookieProcess
from tests.fixtures.draws import examples
from tests.hostile.peer import Peer, add, batch, entry_of, read, records
from tests.reference.wire_v2 import encode_request

Bookies = Callable[..., list[BookieProcess]]

ENTRIES = 20_000
SIZE = 1000


def stored(entry: int) -> bytes:
    """Return an entry of ledger 1."""
    return entry_of(1, entry, random.Random(entry).randbytes(SIZE))


def fill(bookie: BookieProcess, entries: int = ENTRIES) -> None:
    """Write ledger 1."""
    with Peer(bookie.address) as peer:
        for first in range(0, entries, 1000):
            ids = range(first, min(entries, first + 1000))
            peer.send(*(add(1, entry, stored(entry)[32:]) for entry in ids))
            assert {peer.answer().code for _ in ids} == {0}


def serves(peer: Peer, *, entries: int = ENTRIES) -> bool:
    """Return whether reads return what was written."""
    start = random.randrange(entries - 100)
    found = records(peer.ask(batch(1, start, count=100)).body)
    assert found == [stored(start + k) for k in range(len(found))]
    assert peer.ask(read(1, start)).body == stored(start)
    return len(found) > 0


def status(bookie: BookieProcess, field: str) -> int:
    """Return a field of the process's status, in bytes."""
    text = Path(f"/proc/{bookie.pid}/status").read_text()
    return int(re.search(rf"{field}:\s+(\d+) kB", text)[1]) * 1024  # type: ignore[index]


def budget(bookie: BookieProcess) -> int:
    """Return the sum of the budgets that the bookie logged, in bytes."""
    return int(re.findall(r"total_mib=(\d+)", bookie.log_text())[-1]) * MIB


def within_budget(bookie: BookieProcess) -> bool:
    """S6, B19: return whether the peak memory is within the budget."""
    peak = status(bookie, "VmHWM")
    print(f"peak {peak // MIB} MiB, budgets {budget(bookie) // MIB} MiB")
    if any(name in os.environ.get("LD_PRELOAD", "") for name in ("libasan", "libtsan")):
        return True  # sanitizers keep freed memory for a while, and shadow all memory
    return peak <= budget(bookie)


@pytest.mark.thorough
@pytest.mark.parametrize("cold", [False, True])
def test_clients_that_never_read(bookies: Bookies, *, cold: bool) -> None:
    """S6: a hundred clients request batch after batch; they are paused or closed, and buffers stay bounded."""
    (bookie,) = bookies(1, dbStorage_writeCacheMaxSizeMb="64")
    fill(bookie)
    if cold:
        bookie.restart()
    with contextlib.ExitStack() as stack, Peer(bookie.address) as good:
        request = b"".join(
            encode_request(batch(1, start, count=1000, size=5 << 20, request_id=start))
            for start in range(0, ENTRIES, 97)
        )
        hogs = [stack.enter_context(Peer(bookie.address, receive_bytes=4096)) for _ in range(100)]
        for _ in range(5):
            for hog in hogs:
                hog.sock.setblocking(False)
                with contextlib.suppress(BlockingIOError, ConnectionResetError, BrokenPipeError):
                    hog.sock.send(request)
                assert serves(good)
            with Peer(bookie.address) as new:
                assert serves(new)
        assert within_budget(bookie)


@pytest.mark.thorough
def test_clients_that_never_read_small_answers(bookies: Bookies) -> None:
    """S6: small responses are copied into the output budget, and peers that do not read are closed before others."""
    (bookie,) = bookies()
    fill(bookie, 1000)
    with contextlib.ExitStack() as stack, Peer(bookie.address) as good:
        hogs = [stack.enter_context(Peer(bookie.address, receive_bytes=4096)) for _ in range(60)]
        request = b"".join(encode_request(read(1, entry)) for entry in range(1000)) * 2
        for _ in range(8):
            for hog in hogs:
                hog.sock.setblocking(False)
                with contextlib.suppress(BlockingIOError, ConnectionResetError, BrokenPipeError):
                    hog.sock.send(request)
                assert serves(good, entries=1000)
            with Peer(bookie.address) as new:
                assert serves(new, entries=1000)
        assert within_budget(bookie)


@pytest.mark.thorough
def test_frames_that_never_end(bookies: Bookies) -> None:
    """S5: a hundred connections send all but the last byte of a long frame, and the input budget holds."""
    (bookie,) = bookies()
    fill(bookie, 1000)
    frame = encode_request(add(5, 0, bytes(4 * MIB)))[:-1]
    with contextlib.ExitStack() as stack, Peer(bookie.address) as good:
        for _ in range(100):
            peer = stack.enter_context(Peer(bookie.address))
            with contextlib.suppress(ConnectionResetError, BrokenPipeError):
                peer.sock.sendall(frame)
            assert serves(good, entries=1000)
        assert within_budget(bookie)


@pytest.mark.thorough
def test_idle_connections(bookies: Bookies, many_descriptors: int) -> None:
    """S7: five thousand connections from one address cost little, slow nobody down, and can still send requests."""
    (bookie,) = bookies(1, serverMaxConnectionsPerAddress="0")
    fill(bookie, 1000)
    before = status(bookie, "VmRSS")
    with contextlib.ExitStack() as stack:
        peers = [stack.enter_context(Peer(bookie.address)) for _ in range(5000)]
        assert serves(peers[-1], entries=1000)
        assert serves(peers[0], entries=1000)
        assert status(bookie, "VmRSS") - before < 150 * MIB
        for peer in peers:
            peer.send(read(1, 3))
        assert all(peer.answer().body == stored(3) for peer in peers)


@pytest.mark.thorough
def test_no_descriptors_left(bookies: Bookies) -> None:
    """S7, B19: connections cannot take the disk's descriptors. The bookie refuses some, and accepts new ones later."""
    (bookie,) = bookies(1, journalMaxSizeMB="16", journalPreAllocSizeMB="1", flushInterval="100")
    fill(bookie)
    resource.prlimit(bookie.pid, resource.RLIMIT_NOFILE, (512, 512))
    with contextlib.ExitStack() as stack:
        good = stack.enter_context(Peer(bookie.address))
        assert serves(good, entries=1000)
        refused = 0
        for _ in range(600):
            peer = stack.enter_context(Peer(bookie.address))
            with contextlib.suppress(ConnectionResetError, BrokenPipeError, EOFError):
                peer.send(read(1, 1))
                assert peer.answer().body == stored(1)
                continue
            refused += 1
        assert refused > 0
        for entry in range(50_000):  # enough for new journal and log files
            good.send(add(2, entry, bytes(1000)))
            if entry % 100 == 99:
                assert {good.answer().code for _ in range(100)} == {0}
        assert serves(good, entries=1000)
    with Peer(bookie.address) as peer:
        assert serves(peer, entries=1000)


GARBAGE = st.lists(
    st.one_of(st.binary(max_size=300), st.sampled_from([bytes(4), b"\0\0\0\x18\x02\x02", b"\0\0\0\x28\x02\x07\0\0"])),
    max_size=8,
)


@settings(max_examples=examples(100), deadline=None)
@given(garbage=GARBAGE)
def throw(address: tuple[str, int], garbage: list[bytes]) -> None:
    """Send pieces on one connection, and correct reads on another in between."""
    with Peer(address) as bad, Peer(address) as good:
        for piece in garbage:
            with contextlib.suppress(ConnectionResetError, BrokenPipeError):
                bad.sock.sendall(piece)
            assert good.ask(read(1, 1)).body == stored(1)


def test_garbage_beside_good_requests(bookies: Bookies) -> None:
    """S5: whatever one connection sends, the other is served."""
    (bookie,) = bookies()
    fill(bookie, 1000)
    throw(bookie.address)
    assert within_budget(bookie)
