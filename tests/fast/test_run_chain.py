"""Test the chain of runs, which proves that an entry is not stored, in new tables and in damaged ones."""

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from bookie._fast.index.codec import unpack_next
from bookie._fast.index.view import Index
from bookie.storage.tools.verify_index import table_values, verify_index
from tests.fast.index_edits import editing_runs
from tests.reference import location_index as model


@pytest.fixture
def index(tmp_path: Path) -> Iterator[Index]:
    """Open an empty index."""
    opened = Index.open(tmp_path, 1 << 30)
    yield opened
    opened.close()


def put(index: Index, *runs: tuple[int, int, int, int, list[int]]) -> None:
    """Put runs in one transaction."""
    index.begin()
    for run in runs:
        index.put_run(*run)
    index.commit()


def stored(directory: Path) -> list[tuple[bytes, bytes]]:
    """Return the table of runs, read from the file."""
    values, problems = table_values(directory, b"locations")
    assert not problems
    return values


def test_an_empty_table_is_a_head_that_names_nothing(index: Index, tmp_path: Path) -> None:
    """A new index can prove that it is empty."""
    assert stored(tmp_path) == [model.pack_head()]
    assert index.reader().stat().runs == 0
    assert index.reader().walk(10) == []


def test_each_value_names_the_next_across_ledgers(index: Index, tmp_path: Path) -> None:
    """Runs in any order, one of them in several values and one cut in two, are stored as the model packs them."""
    put(index, (5, 100, 1, 1024, [10] * 20), (5, 0, 1, 9000, [7] * 8), (2, 3, 1, 50_000, [1, 0, 300] * 200))
    put(index, (5, 105, 2, 1024, [9] * 3))
    runs = [
        (2, 3, 1, 50_000, [1, 0, 300] * 200),
        (5, 0, 1, 9000, [7] * 8),
        (5, 100, 1, 1024, [10] * 5),
        (5, 105, 2, 1024, [9] * 3),
        (5, 108, 1, 1024 + 8 * 14, [10] * 12),
    ]
    expected = [model.pack_head((2, 3))]
    for run, following in itertools.pairwise([*runs, None]):
        assert run is not None
        expected += model.pack_whole(*run, next_run=following and following[:2])
    assert stored(tmp_path) == expected


def test_deletions_close_the_chain(index: Index, tmp_path: Path) -> None:
    """After deletions of whole ledgers and in parts, the run before links to the run after."""
    put(index, *((ledger, first, 1, 1024, [5]) for ledger in range(1, 6) for first in (0, 10, 20)))
    index.begin()
    index.delete_ledger(3)
    assert index.delete_runs(5, 2) == (2, False)
    index.commit()
    chain = [unpack_next(*value) for value in stored(tmp_path)]
    assert chain == [*((ledger, first) for ledger in (1, 2, 4) for first in (0, 10, 20)), (5, 20), None]


def remove_quietly(directory: Path, key: tuple[int, int]) -> None:
    """Remove a run without the index, as if a page lost a node or became unreachable."""
    with editing_runs(directory) as transaction:
        assert transaction.delete(key[0].to_bytes(8, "big") + key[1].to_bytes(8, "big"))


@pytest.mark.parametrize("lost", [(1, 20), (1, 0), (2, 0), (3, 10)])
def test_b7_a_run_that_is_lost_is_never_denied(tmp_path: Path, lost: tuple[int, int]) -> None:
    """B7: a run that LMDB does not find is damage for every look-up that it could answer, and for no other."""
    keys = [(ledger, first) for ledger in (1, 2, 3) for first in (0, 10, 20)]
    index = Index.open(tmp_path)
    put(index, *((*key, 1, 1024, [5] * 5) for key in keys))
    index.close()
    remove_quietly(tmp_path, lost)
    index = Index.open(tmp_path)
    reader = index.reader()
    following = [*keys, (9, 9)][keys.index(lost) + 1]
    for ledger, entry in itertools.product(range(5), range(35)):
        doubtful = lost <= (ledger, entry) < following
        expected = any((ledger, first) in keys and first <= entry < first + 5 for first in (0, 10, 20))
        if doubtful:
            with pytest.raises(ValueError, match="fails its checksum"):
                reader.lookup(ledger, entry)
        else:
            assert (reader.lookup(ledger, entry) is not None) == expected
    ledger = lost[0]
    if following[0] != ledger:
        with pytest.raises(ValueError, match="fails its checksum"):
            reader.last(ledger)
    else:
        assert reader.last(ledger) == 24
    for call in (lambda: reader.next(ledger, lost[1]), lambda: reader.runs(ledger), lambda: reader.walk(100)):
        with pytest.raises(ValueError, match="fails its checksum"):
            call()
    index.begin()
    with pytest.raises(ValueError, match="fails its checksum"):
        index.put_run(ledger, lost[1] + 7, 1, 1024, [5])
    index.abort()
    index.close()
    assert any(
        "names another next run" in problem or "names a next one" in problem for problem in problems_of(tmp_path)
    )


def problems_of(directory: Path) -> tuple[str, ...]:
    """Return the problems that the tools find in an index."""
    return verify_index(directory).problems
