"""Lookups and puts in the location index. The page cache holds the index; commits are synced.

Workloads: entry sizes all equal or random; one ledger, or a thousand that grow together. A round of lookups is 10,000
random entries of one ledger in one call, which share the cost of the Python call.
"""

import array
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from bookie._fast.index.view import Index

ENTRIES = 500_000
SIZES = {"equal": (1024, 1025), "near": (1000, 1200), "random": (20, 60_000)}


@pytest.fixture
def index(tmp_path: Path) -> Iterator[Index]:
    """Open an empty index."""
    opened = Index.open(tmp_path)
    yield opened
    opened.close()


def fill(index: Index, ledgers: range, entries: int, sizes: list[int]) -> None:
    """Put one flush: `entries` entries of each ledger, 1,000 per run."""
    index.begin()
    for ledger in ledgers:
        for first in range(0, entries, 1000):
            index.put_run(ledger, first, 1, 1024 + first * 1000, sizes[: min(1000, entries - first)])
    index.commit()


@pytest.mark.parametrize("sizes", SIZES)
def test_look_up(benchmark: BenchmarkFixture, index: Index, sizes: str) -> None:
    """Measure 10,000 random lookups in a ledger of 500,000 entries, beside 100 other ledgers."""
    numbers = random.Random(1)
    fill(index, range(100), 2000, [numbers.randrange(*SIZES[sizes]) for _ in range(1000)])
    fill(index, range(50, 51), ENTRIES, [numbers.randrange(*SIZES[sizes]) for _ in range(1000)])
    reader = index.reader()
    wanted = array.array("q", (numbers.randrange(ENTRIES) for _ in range(10_000)))
    benchmark.extra_info["look-ups"] = len(wanted)
    benchmark.extra_info["runs"] = reader.stat().runs
    assert benchmark(reader.count_present, 50, wanted) == len(wanted)


@pytest.mark.parametrize("sizes", SIZES)
def test_flush_of_1000_ledgers(benchmark: BenchmarkFixture, index: Index, sizes: str) -> None:
    """Measure a transaction with 500 entries of each of 1,000 ledgers, and its synced commit."""
    numbers = random.Random(1)
    lengths = [numbers.randrange(*SIZES[sizes]) for _ in range(500)]
    flushes = iter(range(1_000_000))

    def flush() -> None:
        first = next(flushes) * 500
        index.begin()
        for ledger in range(1000):
            index.put_run(ledger, first, 1, 1024, lengths)
        index.commit()

    benchmark.extra_info["entries"] = 500_000
    benchmark.pedantic(flush, rounds=10)  # type: ignore[no-untyped-call]  # pytest-benchmark types only __call__


def test_commit_of_one_run(benchmark: BenchmarkFixture, index: Index) -> None:
    """Measure the minimum of a checkpoint: one put and its synced commit."""
    numbers = iter(range(1 << 30))

    def commit() -> None:
        index.begin()
        index.put_run(1, next(numbers), 1, 1024, [100])
        index.commit()

    benchmark(commit)
