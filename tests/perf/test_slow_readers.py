"""A thousand peers that do not read: memory keeps to the budget that was printed, adds and checkpoints go on."""

import resource
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from perf.slow_readers import measure
from tests.fixtures.bookies import BookieProcess

READERS = 1000
WAITED_S = 1.0
"""What docs/architecture.md promises of a single flush; here of all together."""


@pytest.fixture
def many_descriptors() -> Iterator[int]:
    """Allow this process as many as it may have; how many."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    yield hard
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.thorough
def test_a_thousand_readers_that_do_not_read(
    bookies: Callable[..., list[BookieProcess]], many_descriptors: int
) -> None:
    """B17, B18: in V2 and V3, large and small answers, some end in the middle. Three times the write cache is added
    beside them, so flushes end; none waits longer than was promised; the resident memory never exceeds the budget;
    who reads gets the right bytes or is told to come later; the journal is trimmed, so marks move; the stop is orderly.
    """
    assert many_descriptors > 2 * READERS
    (bookie,) = bookies(1, journalMaxSizeMB="16", journalMaxBackups="0", dbStorage_maxLedgers="2000")
    told = measure(bookie, READERS, 96)
    assert told["rss_peak_mib"] <= told["budget_mib"]
    assert told["reads_served"] > 0
    assert told["reads_wrong"] == 0
    assert told["flushes"] >= 3
    assert told["flushes_waited_s"] < WAITED_S
    kept = sum(file.stat().st_size for file in Path(bookie.journal).rglob("*.txn"))
    assert kept < 96 << 20
    assert bookie.stop() == 0
