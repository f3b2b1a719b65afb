"""Test reads that wait for the disk: each connection has a queue, and queues are served in turn.

Modules: store.read_queue, store.read_pool.
"""

from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from bookie.storage.settings import MIB
from tests.hostile.local import STOP_S, LocalBookie, local_bookie
from tests.hostile.peer import Peer, read
from tests.hostile.wires import checked, fill, stored

COLD = 1
ENTRIES = 700
SMALL: dict[str, Any] = {
    "io_threads": 1,
    "read_threads": 1,
    "write_cache_bytes": 16 * MIB,
    "flush_interval_ms": 600_000,
    "output_high_bytes": 64 * MIB,
    "output_bytes_max": 256 * MIB,
}


@pytest.fixture
def bookie(tmp_path: Path, faulty: ModuleType) -> Iterator[LocalBookie]:
    """Run a bookie with planned disk faults, one thread that reads from disk, and a ledger that is only on disk."""
    with local_bookie(tmp_path, files=faulty.FaultyFiles(), **SMALL) as bookie:
        with bookie.peer() as peer:
            fill(peer, COLD, range(ENTRIES))
            assert bookie.storage.checkpoint()
        yield bookie


@pytest.mark.parametrize("flooders", [1, 8])
def test_one_read_comes_before_the_rest_of_a_flood(bookie: LocalBookie, faulty: ModuleType, flooders: int) -> None:
    """A single read is served after one read of each flooding connection; the disk stalls again right after that."""
    flood = [bookie.peer() for _ in range(flooders)]
    asked = [range(10 + at, ENTRIES - 20, 22) for at in range(0, 2 * flooders, 2)]
    total = sum(map(len, asked))
    stall = faulty.plan("pread", "STALL", suffix=".log")
    for one, entries in zip(flood, asked, strict=True):
        one.send(*(read(COLD, entry) for entry in entries))
    assert faulty.wait_hit(stall, STOP_S)
    bookie.until("read_pool_queued", lambda waiting: waiting == total - 1)
    with bookie.peer() as victim:
        victim.send(read(COLD, ENTRIES - 1))
        bookie.until("read_pool_queued", lambda waiting: waiting == total)
        faulty.plan("pread", "STALL", suffix=".log", nth=flooders + 2)
        faulty.release()
        assert checked(COLD, ENTRIES - 1, [victim.answer().body]) == (COLD, ENTRIES - 1, 1)
        assert bookie.stat("read_pool_queued") >= total - flooders - 2
        faulty.clear()
        for one, entries in zip(flood, asked, strict=True):
            assert {one.answer().body for _ in entries} == {stored(COLD, entry) for entry in entries}
            one.close()


@pytest.mark.parametrize("limit", [{"pending_reads_max": 40}, {"read_queue_max": 39}], ids=["of a loop", "in all"])
def test_a_full_queue_has_room_for_who_has_nothing_else_waiting(
    tmp_path: Path, faulty: ModuleType, limit: dict[str, int]
) -> None:
    """The connection that filled the queue is refused, which is counted, but the only read of another is not."""
    limits = {**SMALL, **limit}
    with local_bookie(tmp_path, files=faulty.FaultyFiles(), **limits) as bookie, bookie.peer() as flood:
        fill(flood, COLD, range(ENTRIES))
        assert bookie.storage.checkpoint()
        stall = faulty.plan("pread", "STALL", suffix=".log")
        flood.send(read(COLD, 10))
        assert faulty.wait_hit(stall, STOP_S)
        flood.send(*(read(COLD, entry) for entry in range(20, 610, 10)))
        bookie.until("refused_reads", lambda refused: refused == 20)
        with bookie.peer() as victim:
            victim.send(read(COLD, ENTRIES - 1))
            bookie.until("reads_in_progress", lambda under_way: under_way == 41)
            faulty.release()
            assert checked(COLD, ENTRIES - 1, [victim.answer().body]) == (COLD, ENTRIES - 1, 1)
        assert sorted(flood.answer().code for _ in range(60)) == [0] * 40 + [106] * 20


def wait_with_reads(bookie: LocalBookie, faulty: ModuleType, peer: Peer, first: int, count: int) -> None:
    """Stall the disk and have it owe the peer so many reads, the first of which a thread has begun."""
    stall = faulty.plan("pread", "STALL", suffix=".log")
    peer.send(*(read(COLD, first + 22 * at) for at in range(count)))
    assert faulty.wait_hit(stall, STOP_S)
    bookie.until("read_pool_queued", lambda waiting: waiting == count - 1)


def test_nothing_is_read_for_a_peer_that_is_gone(bookie: LocalBookie, faulty: ModuleType) -> None:
    """The reads that wait are dropped with their connection while the disk stalls, and those of others are served."""
    with bookie.peer() as victim:
        for at in range(3):
            with bookie.peer() as gone:
                wait_with_reads(bookie, faulty, gone, 10 + 100 * at, 20)
                if at == 2:
                    victim.send(read(COLD, ENTRIES - 1))
                    bookie.until("read_pool_queued", lambda waiting: waiting == 20)
                gone.abort()
            bookie.until("reads_in_progress", lambda under_way: under_way < 20)
            assert bookie.stat("read_pool_queued") == (at == 2)
            assert bookie.stat("reads_in_progress") == 1 + (at == 2)
            faulty.clear()
            bookie.until("reads_in_progress", lambda under_way: under_way == 0)
        assert checked(COLD, ENTRIES - 1, [victim.answer().body]) == (COLD, ENTRIES - 1, 1)
        bookie.until("read_pool_jobs", lambda jobs: jobs == 0)
        assert bookie.stat("input_buffer_bytes") == 0


def test_a_stop_reads_nothing_more(bookie: LocalBookie, faulty: ModuleType) -> None:
    """A stop that cannot wait any longer closes the connections, and only the read that has begun is finished."""
    with bookie.peer() as peer:
        wait_with_reads(bookie, faulty, peer, 10, 30)
        served = bookie.stat("read_pool_served")
        bookie.port.stop(0.0)
        assert bookie.stat("read_pool_queued") == 0
        faulty.clear()
        bookie.storage.stop()
        assert bookie.stat("read_pool_served") == served + 1
