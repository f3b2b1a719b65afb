"""Caches that are too small for the load: rings that turn over, halves that are recycled, disks that stall.

Modules: store.storage, cache.write, cache.read, store.checkpoint.
"""

import random
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from bookie._fast.store.direct import Direct
from bookie.storage.settings import MIB
from tests.fixtures.faults import go_on
from tests.hostile.local import LocalBookie, local_bookie
from tests.hostile.peer import Peer, add, batch, entry_of, read, records
from tests.seeded import seeded_random

LEDGERS = range(1, 9)
ENTRIES = 600
SMALL: dict[str, Any] = {
    "write_cache_bytes": 2 * MIB,
    "flush_bytes": MIB // 4,
    "read_cache_bytes": 128 << 10,
    "read_segment_bytes": 64 << 10,
    "output_high_bytes": 400_000,
    "output_low_bytes": 100_000,
}


@cache
def stored(ledger: int, entry: int) -> bytes:
    """Return the expected entry."""
    seeded_random = random.Random(ledger << 32 | entry)
    return entry_of(ledger, entry, seeded_random.randbytes(seeded_random.randrange(4000)))


def fill(peer: Peer, ledger: int, entries: range) -> None:
    """Write entries and wait until they are acknowledged."""
    peer.send(*(add(ledger, entry, stored(ledger, entry)[32:]) for entry in entries))
    assert {peer.answer().code for _ in entries} == {0}


@pytest.fixture
def bookie(tmp_path: Path) -> Iterator[LocalBookie]:
    """A bookie with many times more flushed ledgers than its caches hold."""
    with local_bookie(tmp_path, throttle_ms_max=20_000, **SMALL) as bookie:
        with bookie.peer() as peer:
            for ledger in LEDGERS:
                for first in range(0, ENTRIES, 100):
                    fill(peer, ledger, range(first, first + 100))
        yield bookie


def read_all(bookie: LocalBookie, seed: int, rounds: int) -> None:
    """Read batches from random places, with several outstanding and the responses read late."""
    drawn = random.Random(seed)
    with bookie.peer(receive_bytes=65536) as peer:
        for _ in range(rounds):
            asked = [(drawn.choice(LEDGERS), drawn.randrange(ENTRIES)) for _ in range(8)]
            peer.send(*(batch(ledger, entry, size=200_000, request_id=k) for k, (ledger, entry) in enumerate(asked)))
            for _ in asked:
                answer = peer.answer()
                ledger, entry = asked[answer.request_id]
                assert (answer.code, answer.ledger, answer.entry) == (0, ledger, entry)
                found = records(answer.body)
                assert found == [stored(ledger, entry + k) for k in range(len(found))]


def test_readers_while_ring_and_halves_turn_over(bookie: LocalBookie) -> None:
    """B21: slow readers hold slices while the ring turns over and the halves are recycled, and all bytes are right."""
    seed = seeded_random().randrange(2**32)
    done = threading.Event()

    def write() -> None:
        with bookie.peer() as peer:
            for first in range(0, 5000, 50):
                fill(peer, 100, range(first, first + 50))
                for entry in (first, first + 49):
                    assert peer.ask(read(100, entry)).body == stored(100, entry)
        done.set()

    with ThreadPoolExecutor(6) as threads:
        jobs = [threads.submit(read_all, bookie, seed + k, 20) for k in range(5)]
        jobs.append(threads.submit(write))
        for job in jobs:
            job.result()
    assert done.is_set()
    assert bookie.stat("read_cache_evicted_segments") > 10
    assert bookie.stat("flushes") > 4
    with bookie.peer() as peer:
        for entry in range(0, 5000, 37):
            assert peer.ask(read(100, entry)).body == stored(100, entry)


def test_one_who_does_not_read_does_not_stop_the_flush(bookie: LocalBookie) -> None:
    """B18, B21: slices of a paused connection are copied when their memory is needed, and it gets its bytes later."""
    with bookie.peer(receive_bytes=4096) as slow, bookie.peer() as peer:
        fill(peer, 50, range(100))
        for k in range(30):
            slow.send(batch(50, 0, size=200_000, request_id=k))
        assert peer.ask(read(50, 3)).body == stored(50, 3)
        for _ in range(3):
            assert bookie.storage.checkpoint()
        for first in range(100, 1000, 100):
            fill(peer, 50, range(first, first + 100))
        answers = [slow.answer() for _ in range(30)]
        assert {answer.request_id for answer in answers} == set(range(30))
        for answer in answers:
            found = records(answer.body)
            assert found == [stored(50, n) for n in range(len(found))]


def test_a_flush_that_stalls(tmp_path: Path, faulty: ModuleType) -> None:
    """Adds wait for a bounded time, then get ETOOMANYREQUESTS; reads are served; adds continue when the disk does."""
    with (
        local_bookie(tmp_path, files=faulty.FaultyFiles(), throttle_ms_max=200, **SMALL) as bookie,
        bookie.peer() as peer,
        bookie.peer() as other,
    ):
        rule = faulty.plan("pwritev", "STALL", suffix=".log")
        peer.send(*(add(1, entry, bytes(10_000)) for entry in range(400)))
        codes = []
        while 106 not in codes:
            codes.append(peer.answer().code)
            assert other.ask(read(1, 0)).body == entry_of(1, 0, bytes(10_000))
        assert set(codes) == {0, 106}
        assert faulty.hits(rule) > 0
        assert bookie.stat("stalls") > 0
        go_on()
        codes += [peer.answer().code for _ in range(400 - len(codes))]
        assert set(codes) == {0, 106}
        assert bookie.storage.checkpoint()
        assert other.ask(add(1, 400, b"x")).code == 0
        for entry, code in enumerate(codes):
            if code == 0:
                assert other.ask(read(1, entry)).body == entry_of(1, entry, bytes(10_000))


def test_a_directory_that_hangs_delays_no_other(tmp_path: Path, faulty: ModuleType) -> None:
    """When no add has found room in a directory for as long as one may wait, further ones are refused at once. So adds
    behind them on their connection, which go to another directory, are not delayed.
    """
    directories = tmp_path / "calm", tmp_path / "hung"
    with (
        local_bookie(
            tmp_path, files=faulty.FaultyFiles(), throttle_ms_max=200, ledger_directories=directories, **SMALL
        ) as bookie,
        bookie.peer() as peer,
    ):
        faulty.plan("pwritev", "STALL", suffix="hung/current/0.log")
        peer.send(*(add(1, entry, bytes(10_000)) for entry in range(300)))
        assert {peer.answer().code for _ in range(300)} == {0, 106}
        stalls = bookie.stat("stalls")
        peer.send(*(add(1 + entry % 2, entry, b"x" if entry % 2 else bytes(10_000)) for entry in range(400, 500)))
        answers = [peer.answer() for _ in range(100)]
        assert {(answer.ledger, answer.code) for answer in answers} == {(1, 106), (2, 0)}
        assert bookie.stat("stalls") == stalls
        go_on()
        assert bookie.storage.checkpoint()
        assert peer.ask(add(1, 500, bytes(10_000))).code == 0


def test_a_journal_that_stalls_causes_no_flush(tmp_path: Path, faulty: ModuleType) -> None:
    """Adds that wait for the journal's memory do not empty a half of the write cache that has room for them."""
    with (
        local_bookie(
            tmp_path, files=faulty.FaultyFiles(), throttle_ms_max=20_000, write_cache_bytes=256 * MIB
        ) as bookie,
        bookie.peer() as peer,
    ):
        faulty.plan("fdatasync", "STALL", suffix=".txn")
        adds = [add(1, entry, bytes(100_000)) for entry in range(120)]
        with ThreadPoolExecutor(1) as threads:
            sent = threads.submit(peer.send, *adds)
            bookie.until("stalls", lambda stalls: stalls > 0)
            go_on()
            assert {peer.answer().code for _ in adds} == {0}
            sent.result()
        assert bookie.stat("flushes") == 0


def test_a_swap_serves_all_who_waited_for_it(tmp_path: Path) -> None:
    """While a swap waits for the memory that a reader holds, adds ask for room. What they get is that swap: no flush of
    a few entries follows it.
    """
    with (
        local_bookie(
            tmp_path, throttle_ms_max=20_000, keep_flushed=True, write_cache_bytes=4 * MIB, flush_bytes=MIB // 4
        ) as bookie,
        bookie.peer() as peer,
    ):
        fill(peer, 1, range(100))
        assert bookie.storage.stores is not None
        direct = Direct(bookie.storage.stores, bookie.storage.pool)
        held = direct.read(1, 0, count=10, size=MIB)
        assert held.slices
        enough = threading.Event()

        def write() -> int:
            entry = 0
            while not enough.is_set():
                assert peer.ask(add(2, entry, bytes(10_000))).code == 0
                entry += 1
            return entry

        with ThreadPoolExecutor(1) as threads:
            writer = threads.submit(write)
            bookie.until("stalls", lambda stalls: stalls > 0 or writer.done())
            flushes = bookie.stat("flushes")
            enough.set()
            held.release()
            entry = writer.result()
        bookie.until("flushes", lambda now: now > flushes)
        for later in range(entry, entry + 10):
            assert peer.ask(add(2, later, b"x")).code == 0
        assert bookie.storage.checkpoint()
        assert bookie.stat("flushes") == flushes + 2
        direct.close()
