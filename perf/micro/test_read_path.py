"""Responses from memory and from the disk, and the flush between them, without sockets.

Workloads: 100,000 entries of 1 KiB in one ledger or spread over a thousand; batches of 1,000 and single entries. A
batch is one call, whose entries share the cost of the Python call.
"""

import itertools
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from tests.storage.opened import MIB, Opened

ENTRIES = 100_000
PAYLOAD = bytes(1000)


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Opened]:
    """Open stores with caches that hold everything."""
    one = Opened(
        tmp_path,
        write_cache_bytes=512 * MIB,
        read_cache_bytes=256 * MIB,
        read_segment_bytes=16 * MIB,
        readahead_bytes=4 * MIB,
        index_map_bytes=1 << 30,
        log_bytes_max=1 << 30,
        write_data=False,
    )
    yield one
    one.crash()


def fill(one: Opened, ledgers: int, version: int = 0) -> None:
    """Add ENTRIES entries in all, one ledger after the other."""
    first = version * (ENTRIES // ledgers)
    for at in range(ENTRIES):
        one.direct.add(struct.pack(">qqq", at % ledgers, first + at // ledgers, -1) + PAYLOAD)


@pytest.mark.parametrize("where", ["write cache", "read cache"])
@pytest.mark.parametrize("count", [1, 1000])
def test_hot(benchmark: BenchmarkFixture, opened: Opened, where: str, count: int) -> None:
    """Measure gathering slices of memory, which are pinned and released."""
    fill(opened, 1)
    if where == "read cache":
        opened.checkpoint()
        for first in range(0, ENTRIES, 1000):
            opened.direct.read(0, first, count=1000, size=4 * MIB).release()
    starts = itertools.cycle(range(0, ENTRIES, 1000))

    def read() -> None:
        held = opened.direct.read(0, next(starts), count=count, size=4 * MIB)
        assert held.count == count
        held.release()

    benchmark.extra_info["entries"] = count
    benchmark(read)


def test_cold(benchmark: BenchmarkFixture, tmp_path: Path) -> None:
    """Measure the index, one pread and the read cache, through the read pool; the page cache has the file."""
    one = Opened(tmp_path, write_cache_bytes=512 * MIB, read_cache_bytes=8 * MIB, read_segment_bytes=4 * MIB,
                 readahead_bytes=MIB, index_map_bytes=1 << 30, log_bytes_max=1 << 30, write_data=False)  # fmt: skip
    fill(one, 1)
    one.checkpoint()
    starts = itertools.cycle(range(0, ENTRIES, 1000))

    def read() -> None:
        held = one.direct.read(0, next(starts), count=1000, size=4 * MIB)
        assert held.count == 1000
        held.release()

    benchmark.extra_info["entries"] = 1000
    benchmark(read)
    one.crash()


@pytest.mark.parametrize("ledgers", [1, 1000])
def test_flush(benchmark: BenchmarkFixture, opened: Opened, ledgers: int) -> None:
    """Measure a checkpoint of 100,000 entries: entry log, index and mark."""
    versions = itertools.count()

    def setup() -> None:
        fill(opened, ledgers, next(versions))

    benchmark.extra_info["entries"] = ENTRIES
    benchmark.pedantic(opened.checkpoint, setup=setup, rounds=5)  # type: ignore[no-untyped-call]
