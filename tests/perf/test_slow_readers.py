"""A thousand peers that do not read: memory stays within the logged budget, and adds and checkpoints continue."""

import resource
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from perf.slow_readers import measure
from tests.fixtures.bookies import BookieProcess

READERS = 1000
WAITED_S = 1.0
"""The limit of docs/architecture.md for a single flush; here it applies to all together."""


@pytest.fixture
def many_descriptors() -> Iterator[int]:
    """Raise this process's limit of descriptors as far as possible; return it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    yield hard
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.thorough
def test_a_thousand_readers_that_do_not_read(
    bookies: Callable[..., list[BookieProcess]], many_descriptors: int
) -> None:
    """B17, B18: in V2 and V3, with large and small responses, while some peers disconnect. Three times the write cache
    is added meanwhile, so flushes complete, and none waits longer than documented. Resident memory never exceeds the
    budget. A reader gets the right bytes or is told to retry. The journal is trimmed, so last marks advance. The
    bookie stops properly.
    """
    assert many_descriptors > 2 * READERS
    (bookie,) = bookies(1, journalMaxSizeMB="16", journalMaxBackups="0", dbStorage_maxLedgers="2000")
    reported = measure(bookie, READERS, 96)
    assert reported["rss_peak_mib"] <= reported["budget_mib"]
    assert reported["reads_served"] > 0
    assert reported["reads_wrong"] == 0
    assert reported["flushes"] >= 3
    assert reported["flushes_waited_s"] < WAITED_S
    kept = sum(file.stat().st_size for file in Path(bookie.journal).rglob("*.txn"))
    assert kept < 96 << 20
    assert bookie.stop() == 0
