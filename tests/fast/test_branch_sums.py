"""Test that branch pages of the index are verified, against copies kept in memory or against checksums."""

import struct
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest

from bookie._fast.index.search import RunFile
from bookie._fast.testing.faulty import FaultyFiles, clear, plan
from tests.fast.test_index_search import (
    BRANCH,
    LEAF,
    PAGE,
    FoundRun,
    build,
    expected,
    live_pages,
    nearby,
    parents,
    truth,
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Return the index that the tests of searches use."""
    return build(tmp_path)


@pytest.fixture
def found(file: Path) -> Iterator[RunFile]:
    """Open the index while it is intact."""
    with closing(RunFile(file)) as opened:
        yield opened


def test_branches_in_memory_are_not_read(file: Path) -> None:
    """As many branches as allowed are kept in memory, upper levels first; searches find the same with fewer reads."""
    runs = truth(file)
    run = next(iter(runs.values()))
    reads = []
    for kept in (0, 2, 1_000):
        with closing(RunFile(file, FaultyFiles(), kept)) as found:
            branches, in_memory = found.branches()
            assert in_memory == min(kept, branches)
            assert branches > 2
            assert [found.spanning(*key) for key in runs] == list(runs.values())
            reads.append(reads_of(found, run))
    assert reads == [3, 1, 1]


def reads_of(found: RunFile, run: FoundRun) -> int:
    """Return how many reads a search needs, by failing the first, the second and so on until the search succeeds."""
    try:
        for nth in range(1, 5):
            plan("pread", "EIO", nth=nth, suffix="data.mdb")
            try:
                assert found.spanning(run[0], run[1]) == run
            except OSError:
                continue
            return nth - 1
    finally:
        clear()
    raise AssertionError("more reads than the tree has levels")


def test_b7_a_child_that_is_of_the_past_is_never_followed(file: Path, found: RunFile) -> None:
    """B7: a branch that points to an older copy of its leaf is reported as damage, although all checksums are right."""
    runs = truth(file)
    pages, data = live_pages(file), file.read_bytes()
    leaves: dict[bytes, list[int]] = {}
    for number in range(2, len(data) // PAGE):
        page = data[number * PAGE : (number + 1) * PAGE]
        if struct.unpack_from("<QHH", page)[0] == number and page[10] == LEAF:
            for ledger in nearby(page)[:1]:
                leaves.setdefault(struct.pack(">q", ledger), []).append(number)
    stale = [
        (live, old) for group in leaves.values() for live in group if live in pages for old in set(group) - {*pages}
    ]
    assert len(stale) > 20
    for live, old in stale:
        ((at, levels),) = parents(data, pages, live)
        assert levels == BRANCH
        with file.open("r+b", buffering=0) as raw:
            raw.seek(at)
            raw.write(struct.pack("<IH", old & 0xFFFFFFFF, old >> 32))
        for ledger in nearby(data[live * PAGE : (live + 1) * PAGE]):
            for entry in range(0, 600, 50):
                with suppress(ValueError):
                    assert found.spanning(ledger, entry) == expected(runs, ledger, entry)
        with pytest.raises(ValueError, match="damaged"):
            RunFile(file)
        file.write_bytes(data)
