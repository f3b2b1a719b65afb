"""Test rebuilding an index from entry logs against a dictionary that the model's scan of the same bytes fills."""

import itertools
import os
import random
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bookie._fast.index.rebuild import Rebuild
from bookie._fast.index.view import Index, Reader
from tests.fixtures.draws import examples
from tests.reference import entry_log as model

COUNT = itertools.count()
SPARE = 4 * 24  # the smallest stretch, of two records
ENTRY = st.builds(model.entry, st.integers(0, 3), st.integers(0, 30), st.binary(max_size=40))
LOGS = st.lists(
    st.tuples(st.lists(ENTRY, max_size=25), st.booleans(), st.sampled_from(["", "torn", "zeros"])), max_size=4
)

Places = dict[tuple[int, int], tuple[int, int, int]]


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Return the directory of logs and index."""
    (tmp_path / "index").mkdir()
    return tmp_path


@pytest.fixture
def index(directory: Path) -> Iterator[Index]:
    """Open a new index."""
    opened = Index.open(directory / "index")
    yield opened
    opened.close()


def damaged(data: bytes, how: str) -> bytes:
    """Return a log with the end that a crash leaves."""
    return {"": data, "torn": data + b"\0\0\0\x50abc", "zeros": data + bytes(700)}[how]


def expected(logs: list[bytes], wanted: set[int] | None = None) -> Places:
    """Return the place of each entry, where later copies win."""
    places: Places = {}
    for log_id, data in enumerate(logs):
        for ledger, entry, offset, length in model.scan(data).records:
            if wanted is None or ledger in wanted:
                places[ledger, entry] = (log_id, offset, length)
    return places


def stored(reader: Reader, ledgers: set[int]) -> Places:
    """Return the places that an index has."""
    places: Places = {}
    for ledger in ledgers:
        for run in reader.runs(ledger):
            offset = run.offset
            for entry, length in enumerate(run.lengths, run.first):
                if length:
                    places[ledger, entry] = (run.log_id, offset, length)
                    offset += 4 + length
    return places


@settings(deadline=None, max_examples=examples(60))
@given(
    logs=LOGS,
    wanted=st.none() | st.sets(st.integers(0, 4)),
    stretch=st.sampled_from([SPARE, 10 * 24, 1 << 16]),
    part=st.sampled_from([1, 100, 1 << 20]),
)
def test_like_the_model(
    tmp_path_factory: pytest.TempPathFactory,
    logs: list[tuple[list[bytes], bool, str]],
    wanted: set[int] | None,
    stretch: int,
    part: int,
) -> None:
    """Mixed ledgers, copies within and across logs, torn tails and a filter work with any size of stretch and part."""
    directory = tmp_path_factory.mktemp(f"rebuild{next(COUNT)}")
    index = Index.open(directory, 1 << 24)
    rebuild = Rebuild(index, sorted(wanted) if wanted is not None else None, stretch_bytes=stretch)
    built = [damaged(model.build(entries, closed=closed), how) for entries, closed, how in logs]
    for log_id, data in enumerate(built):
        path = directory / f"{log_id:x}.log"
        path.write_bytes(data)
        found = rebuild.scan(path, log_id, 0, part)
        while found.more:
            found = rebuild.scan(path, log_id, found.end, part)
        assert (found.end, found.torn) == model.scan(data)[1:]
    ids, sizes = rebuild.finish()
    places = expected(built, wanted)
    reader = index.reader()
    assert stored(reader, {ledger for ledger, _ in places}) == places
    assert ids.tolist() == sorted({ledger for ledger, _ in places})
    assert (rebuild.odd, int(sizes.sum()) > 0) == (0, bool(places))
    index.close()


@settings(deadline=None, max_examples=examples(60))
@given(
    logs=st.lists(st.tuples(st.lists(ENTRY, max_size=25), st.integers(1, 2500)), max_size=4),
    stretch=st.sampled_from([SPARE, 1 << 16]),
    part=st.sampled_from([100, 1 << 20]),
)
def test_logs_of_which_only_the_beginning_is_taken(
    tmp_path_factory: pytest.TempPathFactory, logs: list[tuple[list[bytes], int]], stretch: int, part: int
) -> None:
    """What was collected before the end is put at its place in this log, whatever is scanned next, if anything is."""
    directory = tmp_path_factory.mktemp(f"ends{next(COUNT)}")
    index = Index.open(directory, 1 << 24)
    rebuild = Rebuild(index, stretch_bytes=stretch)
    places: Places = {}
    for log_id, (entries, end) in enumerate(logs):
        data = model.build(entries, closed=False)
        path = directory / f"{log_id:x}.log"
        path.write_bytes(data)
        found = rebuild.scan(path, log_id, 0, min(part, end))
        while found.more and found.end < end:
            found = rebuild.scan(path, log_id, found.end, min(part, end - found.end))
        for ledger, entry, offset, length in model.scan(data).records:
            if offset < end:
                places[ledger, entry] = (log_id, offset, length)
    ids, _ = rebuild.finish()
    assert stored(index.reader(), set(ids.tolist())) == places
    assert set(ids.tolist()) == {ledger for ledger, _ in places}
    index.close()


def test_runs_are_as_large_as_a_flush_makes_them(directory: Path, index: Index) -> None:
    """A run has 1,024 slots. A large gap, or a record of another ledger, ends it before that; a small gap does not."""
    ids = [*range(3000), *range(3002, 3010), *range(5000, 5010)]
    entries = [model.entry(1, entry, b"x" * 20) for entry in ids] + [model.entry(2, 0), model.entry(1, 5010)]
    (directory / "5.log").write_bytes(model.build(entries, closed=True))
    rebuild = Rebuild(index)
    assert rebuild.scan(directory / "5.log", 5).records == len(entries)
    rebuild.finish()
    runs = [(run.first, len(run.lengths), run.log_id) for run in index.reader().runs(1)]
    assert runs == [(0, 1024, 5), (1024, 1024, 5), (2048, 614, 5), (2662, 348, 5), (5000, 10, 5), (5010, 1, 5)]
    assert rebuild.runs == 6


def test_interleaved_ledgers_are_put_in_order(directory: Path, index: Index) -> None:
    """Entries of 50 ledgers in random order are all found, although the stretch is too small for them."""
    draw = random.Random(7)
    entries = [(ledger * 977, entry) for ledger in range(50) for entry in range(40)]
    draw.shuffle(entries)
    data = model.build([model.entry(*ids, draw.randbytes(draw.randrange(50))) for ids in entries], closed=False)
    (directory / "0.log").write_bytes(data)
    rebuild = Rebuild(index, stretch_bytes=24 * 600)
    rebuild.scan(directory / "0.log", 0)
    ids, sizes = rebuild.finish()
    assert stored(index.reader(), set(ids.tolist())) == expected([data])
    assert int(sizes.sum()) == len(data) - model.HEADER


def test_ids_that_no_index_holds_are_counted(directory: Path, index: Index) -> None:
    """The highest entry id cannot be indexed: the entry is skipped and counted, and the scan continues."""
    data = model.build([model.entry(1, 2**63 - 1), model.entry(2**63 - 1, 4)], closed=False)
    (directory / "0.log").write_bytes(data)
    rebuild = Rebuild(index)
    assert rebuild.scan(directory / "0.log", 0).records == 2
    assert rebuild.finish()[0].tolist() == [2**63 - 1]
    assert (rebuild.odd, rebuild.taken) == (1, 1)


def test_an_index_that_is_full(directory: Path) -> None:
    """A full index gives one error with the errno, and is left as it was."""
    (directory / "0.log").write_bytes(model.build([model.entry(ledger, 0) for ledger in range(40_000)], closed=False))
    index = Index.open(directory / "index", 1 << 18)
    rebuild = Rebuild(index)
    with pytest.raises(OSError, match="No space left"):
        rebuild.scan(directory / "0.log", 0)
    rebuild.abort()
    assert index.reader().stat().runs == 0
    index.close()


def test_foreign_and_missing_logs(directory: Path, index: Index) -> None:
    """The error names a log that is missing or not an entry log, and the rebuild continues."""
    (directory / "0.log").write_bytes(os.urandom(5000))
    (directory / "2.log").write_bytes(model.build([model.entry(3, 4)], closed=True))
    rebuild = Rebuild(index, np.array([3, 9]))
    with pytest.raises(ValueError, match=r"0\.log: not an entry log"):
        rebuild.scan(directory / "0.log", 0)
    with pytest.raises(FileNotFoundError, match=r"1\.log"):
        rebuild.scan(directory / "1.log", 1)
    rebuild.scan(directory / "2.log", 2)
    assert rebuild.finish()[0].tolist() == [3]


def test_arguments(directory: Path, index: Index) -> None:
    """Invalid arguments are refused at once."""
    with pytest.raises(ValueError, match="stretch_bytes is 95; it must be at least 96"):
        Rebuild(index, stretch_bytes=95)
    index.close()
    with pytest.raises(ValueError, match="must be open"):
        Rebuild(index)
