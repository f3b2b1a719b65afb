"""Test the ledgers and bytes of a log: its map is used if it accounts for every byte, and a scan otherwise."""

import struct
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bookie._fast.entrylog.map import read_map, scan_ledgers
from bookie._fast.entrylog.writer import EntryLog
from tests.fixtures.draws import examples
from tests.reference import entry_log as model


def written(directory: Path, runs: list[tuple[int, int]]) -> Path:
    """Write a closed log with one entry for each run."""
    log = EntryLog(directory)
    for at, (ledger, size) in enumerate(runs):
        log.append(ledger, [model.entry(ledger, at, bytes(size))])
    log.rotate()
    return directory / "0.log"


@given(runs=st.lists(st.tuples(st.integers(0, 5), st.integers(0, 99)), min_size=1, max_size=12))
@settings(deadline=None, max_examples=examples(30))
def test_map_and_scan_agree(tmp_path_factory: pytest.TempPathFactory, runs: list[tuple[int, int]]) -> None:
    """Map and scan agree on the bytes of each ledger, length words included."""
    path = written(tmp_path_factory.mktemp("logs"), runs)
    known, scanned = read_map(path), scan_ledgers(path)
    expected: dict[int, int] = {}
    for ledger, size in runs:
        expected[ledger] = expected.get(ledger, 0) + 4 + len(model.entry(ledger, 0, bytes(size)))
    assert known is not None
    for found in (known, scanned):
        assert dict(zip(found.ledgers.tolist(), found.bytes.tolist(), strict=True)) == expected
        assert found.ledgers.tolist() == sorted(expected)
        assert found.torn_at is None
    assert (known.from_map, scanned.from_map) == (True, False)


def test_more_ledgers_than_a_record_of_the_map_holds(tmp_path: Path) -> None:
    """The ids of 10,001 ledgers are read, which are more than a record of the map holds."""
    found = read_map(written(tmp_path, [(ledger, 0) for ledger in range(10_001)]))
    assert found is not None
    assert found.ledgers.tolist() == list(range(10_001))


@pytest.mark.parametrize(
    ("at", "layout", "value"),
    [
        (8, ">q", 0),  # never closed
        (8, ">q", 1 << 40),  # beyond the end of the file
        (8, ">q", 1025),  # in the middle of a record
        (16, ">i", 3),  # more ledgers than in the map
        (16, ">i", 1),  # fewer ledgers than in the map
        (-8, ">q", 7),  # more bytes than there are
        (-16, ">q", 1),  # the same ledger twice
        (-16, ">q", -5),
    ],
)
def test_a_map_that_lies_is_not_believed(tmp_path: Path, at: int, layout: str, value: int) -> None:
    """ST1: if one field is wrong, the map is not used, and a scan gives the right result."""
    path = written(tmp_path, [(1, 10), (2, 20)])
    data = bytearray(path.read_bytes())
    struct.pack_into(layout, data, at % len(data), value)
    path.write_bytes(data)
    assert read_map(path) is None
    assert scan_ledgers(path).ledgers.tolist() == [1, 2]


def test_a_torn_log_tells_where(tmp_path: Path) -> None:
    """The scan of a torn log counts what is before the tear, and gives its offset."""
    path = written(tmp_path, [(1, 10), (2, 20)])
    path.write_bytes(path.read_bytes()[: 1024 + 4 + len(model.entry(1, 0, bytes(10))) + 9])
    found = scan_ledgers(path)
    assert read_map(path) is None
    assert (found.ledgers.tolist(), found.torn_at) == ([1], 1024 + 4 + len(model.entry(1, 0, bytes(10))))


def test_a_foreign_file_is_refused(tmp_path: Path) -> None:
    """The error names a file that is not an entry log."""
    (tmp_path / "0.log").write_bytes(b"not ours" * 1000)
    assert read_map(tmp_path / "0.log") is None
    with pytest.raises(ValueError, match="not an entry log"):
        scan_ledgers(tmp_path / "0.log")
