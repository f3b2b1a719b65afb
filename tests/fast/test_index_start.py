"""Test what a start notices about an index: leaves that hold an older state of themselves, in tables of two sizes."""

import random
import struct
from pathlib import Path

import pytest

from bookie._fast.index.view import Index
from tests.fast.test_index_search import LEAF, PAGE, live_pages

GENERATIONS = 4


def build(path: Path, ledgers: int) -> Path:
    """Write an index with this many ledgers of four large runs each, and return its file."""
    numbers = random.Random(1)
    sizes = [numbers.randrange(20, 60_000) for _ in range(400)]
    index = Index.open(path)
    for generation in range(GENERATIONS):
        index.begin()
        for ledger in range(ledgers):
            index.put_run(ledger, generation * 1000, generation, 1024, sizes)
        index.commit()
    index.close()
    return path / "data.mdb"


def leaves(file: Path) -> list[int]:
    """Return the leaves in the order of their keys, without those of tables that have one page."""
    return [number for number, flags in live_pages(file).items() if flags == LEAF]


@pytest.mark.parametrize(("ledgers", "least"), [(30, 30), (1200, 1100)])
def test_b7_a_leaf_of_an_earlier_commit_is_noticed(tmp_path: Path, ledgers: int, least: int) -> None:
    """B7: a leaf whose last write was lost, so that it lacks its newest value, refuses the start of an index."""
    file = build(tmp_path, ledgers)
    Index.open(tmp_path).close()
    found = leaves(file)
    assert len(found) >= least
    with file.open("r+b") as written:
        at = found[len(found) // 2] * PAGE + 12
        written.seek(at)
        (lower,) = struct.unpack("<H", written.read(2))
        written.seek(at)
        written.write(struct.pack("<H", lower - 2))
    with pytest.raises(OSError, match="MDB_CORRUPTED"):
        Index.open(tmp_path)
