"""Test what a start notices about an index (index.opening): leaves that hold an older state of themselves, in tables of
two sizes.
"""

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


def main_leaf(file: Path) -> int:
    """Return the number of the page with the roots of all tables, by the newer meta page."""
    metas = [file.read_bytes()[at * PAGE : (at + 1) * PAGE] for at in range(2)]
    newest = max(metas, key=lambda meta: int(struct.unpack_from("<Q", meta, 144)[0]))
    return int(struct.unpack_from("<Q", newest, 128)[0])


def test_b7_the_first_state_of_all_tables_is_noticed(tmp_path: Path) -> None:
    """B7: an index whose tables are empty, because the last write of the page with their roots was lost, is damaged."""
    index = Index.open(tmp_path)
    file = tmp_path / "data.mdb"
    old, number = file.read_bytes(), 0
    while number < 2 or len(old) <= number * PAGE or old[number * PAGE + 10] != LEAF:
        index.begin()
        index.put_run(len(old), 0, 1, 1024, [100])
        index.commit()
        number = main_leaf(file)
        assert number < 100, "no commit used a page of the new index again"
    index.close()
    states = [old[at * PAGE : (at + 1) * PAGE] for at in range(2, len(old) // PAGE)]
    empty = next(page for page in states if b"locations" in page)
    with file.open("r+b") as written:
        written.seek(number * PAGE)
        written.write(struct.pack("<Q", number) + empty[8:])
    with pytest.raises(OSError, match="MDB_CORRUPTED"):
        Index.open(tmp_path)


@pytest.mark.parametrize("name", [b"locations", b"ledgers", b"fences", b"doubts"])
def test_b7_a_table_with_another_name_is_not_created_again(tmp_path: Path, name: bytes) -> None:
    """B7: a flipped bit in the name of a table is damage, and no reason to begin with an empty one."""
    file = build(tmp_path, 2)
    data = bytearray(file.read_bytes())
    at = data.index(name, main_leaf(file) * PAGE)
    for bit in range(8 * len(name)):
        data[at + bit // 8] ^= 1 << (bit % 8)
        file.write_bytes(data)
        with pytest.raises(OSError, match="MDB_CORRUPTED"):
            Index.open(tmp_path)
        data[at + bit // 8] ^= 1 << (bit % 8)
    file.write_bytes(data)
    Index.open(tmp_path).close()
