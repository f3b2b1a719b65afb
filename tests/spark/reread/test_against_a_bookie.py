"""The model of the read cache compared with a bookie's own counters on the same reads, and the bookie's access log."""

from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from bookie.spark.reread.access_log import read_log
from bookie.spark.reread.cache import CacheSettings
from bookie.spark.reread.replay import Replay, replay
from tests.hostile.local import KIB, local_bookie
from tests.hostile.peer import add, batch, read

LEDGERS = 12
ENTRIES = 400
PAYLOAD = 480
SEGMENT = 64 * KIB
READAHEAD = 40
COUNTED = ("disk_reads", "readahead_batch_count", "rereads", "evicted_entries", "evicted_unused_entries")
GAP = 100
"""A ledger without entry 1, so that reading it goes through the read pool and loads nothing."""

Reads = Iterator[tuple[int, int, int]]


def in_turn() -> Reads:
    """Sequential readers of all ledgers in turn, four entries at a time: more readers than a small cache holds."""
    for first in range(0, ENTRIES, 4):
        for ledger in range(LEDGERS):
            for entry in range(first, first + 4):
                yield ledger, entry, 0


def in_batches() -> Reads:
    """The same with batches that end in the middle of a stretch."""
    for first in range(0, ENTRIES, 7):
        for ledger in range(LEDGERS):
            yield ledger, first, min(7, ENTRIES - first)


def anywhere() -> Reads:
    """Single entries, and short stretches from the middle of a ledger."""
    random = Random(5)
    for _ in range(600):
        ledger, first = random.randrange(LEDGERS), random.randrange(ENTRIES)
        for entry in range(first, min(first + random.choice((1, 1, 30)), ENTRIES)):
            yield ledger, entry, 0


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write ledgers to the disk of a bookie."""
    directory = tmp_path_factory.mktemp("stored")
    one_flush: dict[str, Any] = {"write_cache_bytes": 64 << 20, "flush_interval_ms": 3_600_000}
    with local_bookie(directory, **one_flush) as bookie, bookie.peer() as peer:
        for entry in (0, 2):
            assert peer.ask(add(GAP, entry)).code == 0
        for entry in range(ENTRIES):
            for ledger in range(LEDGERS):
                peer.send(add(ledger, entry, bytes(PAYLOAD)))
            for _ in range(LEDGERS):
                assert peer.answer().code == 0
    return directory


@pytest.mark.parametrize(
    ("reads", "adaptive", "cache_kib"),
    [
        (in_turn, False, 128),
        (in_turn, True, 512),
        (in_batches, False, 128),  # at 512 KiB the bookie's own counters differ by a fifth from run to run
        (in_batches, True, 128),
        (anywhere, False, 128),
        (anywhere, True, 2048),
    ],
)
def test_the_model_counts_what_the_bookie_counts(
    stored: Path, tmp_path: Path, reads: Callable[[], Reads], adaptive: bool, cache_kib: int
) -> None:
    """Disk reads, entries loaded, read again and evicted unused agree within 12 %. Each read waits for its readahead;
    the bookie may evict a segment a page earlier or later.
    """
    log = tmp_path / "access.csv"
    with local_bookie(
        stored, read_cache_bytes=cache_kib * KIB, read_segment_bytes=SEGMENT, readahead_entries=READAHEAD,
        readahead_bytes=1 << 20, adaptive_readahead=adaptive, access_log=str(log), access_log_share=1.0, read_threads=1,
        io_threads=1,
    ) as bookie, bookie.peer() as peer:  # fmt: skip
        for ledger, entry, count in reads():
            assert peer.ask(batch(ledger, entry, count=count) if count else read(ledger, entry)).code == 0
            peer.ask(read(GAP, 1))  # after this read, the only thread of the pool has finished all earlier work
        counted = bookie.storage.stats()
    settings = CacheSettings(cache_kib * KIB, SEGMENT, READAHEAD, 1 << 20, adaptive=adaptive)
    reported = replay(Replay((str(log),), settings, 1))
    assert reported["served"] == sum(max(count, 1) for *_, count in reads())
    for name in COUNTED:
        assert reported[name] == pytest.approx(counted[name], rel=0.12, abs=20), (name, reported, counted)
    known = read_log([log])
    assert known.from_disk > 0
    assert len(known.reads) == sum(1 for _ in reads())
