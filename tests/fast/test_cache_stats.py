"""Test the counters of the read cache (cache.stats): they show thrashing, and none if the cache is large enough."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bookie._fast.base.op_stats import OpView
from tests.reference.storage import entry
from tests.storage.opened import KIB, MIB, Opened

SIZE = 1000
RECORD = 4 + 24 + SIZE
# Readahead is at most half a segment: twenty entries here. A second page of twenty entries does not fit beside them.
PAGE_A_SEGMENT = {"read_segment_bytes": 41216, "read_cache_bytes": 2 * 41216, "readahead_bytes": 20 * RECORD}


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Callable[..., Opened]]:
    """Return a function that opens storage on one directory. The storage is closed after the test."""
    open_ones: list[Opened] = []

    def make(**settings: object) -> Opened:
        open_ones.append(Opened(tmp_path, **settings))  # type: ignore[arg-type]
        return open_ones[-1]

    yield make
    for one in open_ones:
        one.crash()


def fill(one: Opened, ledgers: int, entries: int) -> None:
    """Write entries of RECORD bytes per record and flush them to the entry logs."""
    for ledger in range(ledgers):
        for at in range(entries):
            one.direct.add(entry(ledger, at, payload=bytes(SIZE)))
        assert one.direct.commit()
        one.checkpoint()


def read(one: Opened, ledger: int, first: int, count: int = 1) -> None:
    """Read these entries."""
    held = one.direct.read(ledger, first, count=count, size=count * RECORD)
    assert (held.status, held.count) == ("OK", count)
    held.release()


def test_a_cache_that_holds_all(opened: Callable[..., Opened]) -> None:
    """Each entry is read from disk once, nothing is evicted, and later reads are hits."""
    one = opened(read_cache_bytes=MIB, readahead_bytes=10 * RECORD)
    fill(one, 2, 50)
    for _ in range(3):
        for ledger in range(2):
            for first in range(0, 50, 5):
                read(one, ledger, first, 5)
    stats = one.storage.stats()
    assert stats["readahead_batch_count"] == 100
    assert stats["readahead_batch_size"] == 100 * RECORD
    assert (stats["rereads"], stats["evicted_bytes"]) == (0, 0)
    assert stats["read_cache_hits"] + stats["read_cache_misses"] == 300
    assert stats["read_cache_misses"] < 100
    assert stats["write_cache_hits"] == 0


def test_thrash(opened: Callable[..., Opened]) -> None:
    """RC4: with more readers than the cache has room for, each reading in turn, most entries that were read ahead are
    evicted unused and read again.
    """
    one = opened(**PAGE_A_SEGMENT)
    fill(one, 8, 20)
    for _ in range(20):
        for ledger in range(8):
            read(one, ledger, 0)
    stats = one.storage.stats()
    taken = stats["read_cache_hits"] + stats["read_cache_misses"]
    assert taken == 160
    assert stats["readahead_batch_count"] == 20 * taken
    assert stats["rereads"] == stats["readahead_batch_count"] - 160
    assert stats["evicted_unused_entries"] > 0.8 * stats["evicted_entries"]
    assert stats["evicted_unused_bytes"] == stats["evicted_unused_entries"] * RECORD
    assert 0 < stats["evicted_pages"] <= stats["disk_reads"]


def test_taken_in_any_order(opened: Callable[..., Opened]) -> None:
    """Entries of a page that are read twice, out of order or not at all are counted correctly as used and unused."""
    one = opened(**PAGE_A_SEGMENT)
    fill(one, 5, 20)
    for first in (0, 0, 5):
        read(one, 0, first, 5)
    for first in (0, 9):
        read(one, 1, first)
    for ledger in (2, 3, 4):
        read(one, ledger, 0, 20)
    stats = one.storage.stats()
    assert stats["evicted_pages"] == 3
    assert stats["evicted_unused_entries"] == 10 + (20 - 2) + 0


def test_striped_ledgers_are_told_apart_by_entry(opened: Callable[..., Opened]) -> None:
    """In a ledger with every third entry elsewhere, entries that are read again are counted, and gaps are not."""
    one = opened(**PAGE_A_SEGMENT)
    for ledger in range(8):
        for at in range(30):
            if at % 3 != 2:
                one.direct.add(entry(ledger, at, payload=bytes(SIZE)))
    one.checkpoint()
    for _ in range(2):
        for ledger in range(8):
            read(one, ledger, 0)
    stats = one.storage.stats()
    assert (stats["readahead_batch_count"], stats["rereads"]) == (320, 160)


def test_latencies(opened: Callable[..., Opened]) -> None:
    """Each disk read counts one look-up of a location and one read of the entry log."""
    one = opened()
    fill(one, 3, 10)
    for ledger in range(3):
        read(one, ledger, 0)
    ((_, ops),) = one.storage.store_ops()
    for name in ("lookup_entry_location", "read_entrylog"):
        (seen,) = [view for label, view in ops.items() if label == name and isinstance(view, OpView)]
        assert seen.times == one.storage.stats()["disk_reads"] == 3
        assert seen.total > 0


def test_adaptive_readahead_finds_what_fits(opened: Callable[..., Opened]) -> None:
    """With the readers of `test_thrash`, readahead shrinks while entries are read again, and grows with few readers."""
    one = opened(read_cache_bytes=64 * KIB, read_segment_bytes=16 * KIB, readahead_bytes=15 * RECORD,
                 readahead_entries=15, adaptive_readahead=True)  # fmt: skip
    fill(one, 8, 200)
    for at in range(200):
        for ledger in range(8):
            read(one, ledger, at)
    shrunk = one.storage.readahead()
    assert shrunk[0] < 8 * RECORD
    assert one.storage.stats()["readahead_shrunk"] > 0
    for _ in range(100):
        for first in range(0, 200, 5):
            read(one, 0, first, 5)
            read(one, 1, first, 5)
    assert one.storage.readahead()[0] > shrunk[0]
    assert one.storage.stats()["readahead_grown"] > 0
