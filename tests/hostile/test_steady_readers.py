"""Peers that read steadily but slowly over a network with real segment sizes: none is closed, and their unsent
output stays bounded. Loopback hides this, because its segments have 64 KiB and its buffers are megabytes.

Modules: server.connection, server.slow_readers, server.turns.
"""

import itertools
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from bookie.pb import wire_pb2 as pb
from bookie.storage.settings import MIB
from tests.hostile import v3
from tests.hostile.local import LocalBookie, local_bookie
from tests.hostile.peer import Peer, add, entry_of, read
from tests.hostile.rough_network import NotPermitted, rough_network
from tests.hostile.wires import BYTES, Wire, fill

HOT = 1
ENTRIES = 50
STEP_S = 0.005
BUDGET = 8 * MIB
SMALL: dict[str, Any] = {
    "io_threads": 1,
    "write_cache_bytes": 16 * MIB,
    "flush_bytes": 8 * MIB,
    "flush_interval_ms": 600_000,
    "output_high_bytes": 400_000,
    "output_low_bytes": 100_000,
    "output_bytes_max": BUDGET,
}
TOTAL = {1: 1_500_000, 10: 8_000_000, 80: 40_000_000}
"""Bytes that a reader receives, by its rate in MB per second."""
ADDS = 20_000
FOUR = [("v2", 1), ("v3", 10), ("v2", 80), ("v3", 80)]


class Paced(Peer):
    """A peer that receives at a given rate, a little at a time; its kernel buffers hardly more."""

    def __init__(self, address: tuple[str, int], rate: int) -> None:
        super().__init__(address, receive_bytes=16_384, segment_bytes=1400)
        self.rate = rate
        self.taken = 0
        self.begun = time.monotonic()
        self._pause = threading.Event()

    def take(self, size: int) -> bytes:
        """Return exactly `size` bytes, not before they are due."""
        parts = bytearray()
        while len(parts) < size:
            ahead = self.taken / self.rate - (time.monotonic() - self.begun)
            if ahead > STEP_S:
                self._pause.wait(ahead)
            piece = self.sock.recv(min(size - len(parts), max(4096, int(self.rate * STEP_S))))
            if not piece:
                raise EOFError
            parts += piece
            self.taken += len(piece)
        return bytes(parts)


class Reader:
    """A reader that sends requests as fast as the bookie accepts them, and checks every response."""

    ledgers = itertools.count(100)

    def __init__(self, wire: Wire, kind: str, rate: int) -> None:
        self.wire = wire
        self.kind = kind
        self.peer = Paced(wire.bookie.address, rate * 1_000_000)
        total = TOTAL[rate]
        self.answers = {"singles": total // BYTES, "batches": total // BYTES // ENTRIES + 1, "adds": ADDS}[kind]
        self.ledger = next(self.ledgers)

    def ask(self) -> None:
        """Send all requests, however long it takes; the bookie does not receive them while responses are unsent."""
        for first in range(0, self.answers, 100):
            for at in range(first, min(first + 100, self.answers)):
                if self.kind == "singles":
                    self.wire.single(self.peer, HOT, at % ENTRIES)
                elif self.kind == "batches":
                    self.wire.batch(self.peer, HOT, 0, ENTRIES)
            if self.kind == "adds":
                entries = range(first, min(first + 100, self.answers))
                if self.wire.v3:
                    v3.send(self.peer, *(v3.add3(self.ledger, entry) for entry in entries))
                else:
                    self.peer.send(*(add(self.ledger, entry) for entry in entries))

    def check(self) -> None:
        """Check all responses. Raises EOFError if the bookie closed the connection."""
        for _ in range(self.answers):
            if self.kind == "adds":
                assert (v3.answer(self.peer).status == pb.EOK) if self.wire.v3 else (self.peer.answer().code == 0)
            elif self.kind == "singles":
                ledger, _, count = self.wire.check(self.peer)  # responses from disk come later
                assert (ledger, count) == (HOT, 1)
            else:
                ledger, first, count = self.wire.check(self.peer)
                assert (ledger, first) == (HOT, 0)
                assert count


@contextmanager
def small_bookie(directory: Path) -> Iterator[LocalBookie]:
    """Run a bookie with a ledger in its write cache, and budgets that a few readers can use up."""
    with local_bookie(directory, **SMALL) as bookie:
        with bookie.peer() as peer:
            fill(peer, HOT, range(ENTRIES))
        yield bookie


@pytest.fixture
def bookie(tmp_path: Path) -> Iterator[LocalBookie]:
    """A bookie with small budgets."""
    with small_bookie(tmp_path) as bookie:
        yield bookie


def served(bookie: LocalBookie, readers: list[Reader]) -> None:
    """Check that all readers get all their responses, beside flushes and another reader, and that nothing grows."""
    most = 0.0
    with ExitStack() as stack:
        other = stack.enter_context(bookie.peer())
        threads = stack.enter_context(ThreadPoolExecutor(2 * len(readers)))
        for one in readers:
            stack.callback(one.peer.close)
        jobs: list[Future[None]] = [threads.submit(work) for one in readers for work in (one.check, one.ask)]
        for times in itertools.count():
            if all(job.done() for job in jobs):
                break
            assert other.ask(read(HOT, times % ENTRIES)).code == 0
            most = max(most, bookie.stat("output_buffer_bytes"))
            if times % 500 == 0:
                fill(other, HOT, range(ENTRIES))
                assert bookie.storage.checkpoint()
        for job in jobs:
            job.result()
    assert most <= BUDGET // 2, "what may wait for peers"
    assert bookie.stat("closed_by_limit") == 0
    assert all(bookie.stat(f"turned_away_{reason}") == 0 for reason in range(13))


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["singles", "batches", "adds"])
@pytest.mark.parametrize("rate", TOTAL)
@pytest.mark.parametrize("protocol", ["v2", "v3"])
def test_a_steady_reader_is_never_closed(bookie: LocalBookie, protocol: str, rate: int, kind: str) -> None:
    """B17: it receives several times the budget of output, and uses a fraction of it."""
    served(bookie, [Reader(Wire(protocol, bookie), kind, rate)])


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["singles", "batches", "adds"])
def test_four_of_them_and_somebody_else(bookie: LocalBookie, kind: str) -> None:
    """B17: at three rates, in both protocols. Four at 80 MB/s made the bookie close others, too."""
    served(bookie, [Reader(Wire(protocol, bookie), kind, rate) for protocol, rate in FOUR])


@pytest.mark.parametrize("kind", ["singles", "batches"])
def test_four_of_them_over_a_rough_network(tmp_path: Path, kind: str) -> None:
    """B17: the same with short packets that are delayed and lost."""

    def inside() -> None:
        rough_network()
        with small_bookie(tmp_path) as bookie:
            served(bookie, [Reader(Wire(protocol, bookie), kind, min(rate, 10)) for protocol, rate in FOUR])

    with ThreadPoolExecutor(1) as threads:
        try:
            threads.submit(inside).result()
        except NotPermitted as error:
            pytest.skip(str(error))


@pytest.mark.parametrize(("peers", "reads"), [(50, 240), (250, 40)], ids=["much each", "many"])
def test_buffers_of_readers_that_have_read_all_are_no_obstacle(tmp_path: Path, peers: int, reads: int) -> None:
    """Nobody is closed because connections that are idle now have had long answers before."""
    with local_bookie(tmp_path, io_threads=1, output_bytes_max=BUDGET) as bookie, ExitStack() as open_ones:
        readers = [open_ones.enter_context(bookie.peer()) for _ in range(peers)]
        assert readers[0].ask(add(1, 0, bytes(1000))).code == 0
        for reader in readers:
            reader.send(*(read(1, 0) for _ in range(reads)))
            assert {reader.answer().body for _ in range(reads)} == {entry_of(1, 0, bytes(1000))}
        assert bookie.stat("output_buffer_bytes") < BUDGET // 2
        assert bookie.stat("closed_by_limit") == 0
