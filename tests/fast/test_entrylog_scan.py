"""Test the entry log scan against its model, with whole, torn, damaged and foreign files in both layouts."""

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bookie._fast.entrylog.scan import scan_chunk, scan_entry_log
from tests.reference import entry_log as model
from tests.reference.hexdump import golden

ENTRIES = st.lists(
    st.builds(model.entry, st.integers(0, 2**63 - 1), st.integers(0, 2**63 - 1), st.binary(max_size=80)), max_size=8
)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the path of a file that each example overwrites."""
    return tmp_path_factory.mktemp("scan") / "0.log"


def scan(path: Path, rows_max: int = 1 << 10) -> model.Found:
    """Scan a file, and return the result in the model's terms."""
    chunks = list(scan_entry_log(path, rows_max))
    columns = [np.concatenate([chunk[i] for chunk in chunks]).tolist() for i in range(4)]
    return model.Found(list(zip(*columns, strict=True)), chunks[-1].end, chunks[-1].torn)


def agree(path: Path, data: bytes) -> model.Found | None:
    """Check that scan and model agree, and return what they found; None if both refuse the file as no entry log."""
    path.write_bytes(data)
    try:
        expected = model.scan(data)
    except ValueError:
        with pytest.raises(ValueError, match="not an entry log"):
            scan(path)
        return None
    assert scan(path) == expected
    return expected


def test_the_worked_example(file: Path) -> None:
    """Both entries are found, the map is skipped, and the scan ends at the end of the file."""
    found = agree(file, golden("entry_log.hex"))
    assert found == model.Found([(7, 0, 1024, 41), (7, 1, 1069, 42)], 1155, torn=False)


@settings(deadline=None)
@given(entries=ENTRIES, closed=st.booleans(), zeros=st.sampled_from([0, 1, 3, 4, 100, 5000]), rows=st.integers(1, 9))
def test_like_the_model(file: Path, entries: list[bytes], closed: bool, zeros: int, rows: int) -> None:
    """Open and closed logs, with preallocated zeros after them, are read in chunks of any size."""
    data = model.build(entries, closed=closed) + bytes(zeros)
    found = agree(file, data)
    assert found is not None
    assert [row[:2] for row in found.records] == [
        (int.from_bytes(entry[:8]), int.from_bytes(entry[8:16])) for entry in entries
    ]
    assert not found.torn
    assert scan(file, rows) == found


@settings(deadline=None)
@given(flushes=st.lists(ENTRIES, max_size=4), zeros=st.sampled_from([0, 2, 4096, 9000]), cut=st.integers(0, 9000))
def test_the_direct_layout(file: Path, flushes: list[list[bytes]], zeros: int, cut: int) -> None:
    """Blocks padded with 0xF0 are skipped, zeros end the log, and a truncated log is torn or clean as in the model."""
    data = model.build_direct(flushes, zeros=zeros)
    found = agree(file, data)
    assert found is not None
    assert len(found.records) == sum(map(len, flushes))
    assert not found.torn
    agree(file, data[: max(len(data) - cut, 0)])


def test_every_truncation_point(file: Path) -> None:
    """A log that is truncated anywhere gives its whole records, and is torn exactly if a record is truncated."""
    entries = [model.entry(1, 0, b"a" * 20), model.entry(2, 0), model.entry(1, 1, b"b")]
    whole = model.build(entries, closed=False)
    ends = [1024, 1064, 1084, 1105]
    for cut in range(len(whole) + 1):
        found = agree(file, whole[:cut])
        assert found is not None
        assert len(found.records) == sum(end <= cut for end in ends[1:])
        if cut >= 1024 and cut in ends:
            assert not found.torn


@pytest.mark.parametrize("length", [-1, 1, 15, (256 << 20) + 1, 0x7FFFFFFF, -0x80000000, -0x0F0F0F10])
def test_an_impossible_length_is_torn(file: Path, length: int) -> None:
    """The scan ends at an impossible length: it neither allocates that many bytes nor searches byte by byte."""
    good = model.build([model.entry(1, 0)], closed=False)
    data = good + length.to_bytes(4, signed=True) + os.urandom(100)
    found = agree(file, data)
    assert found is not None
    assert (len(found.records), found.end, found.torn) == (1, len(good), True)


def test_data_behind_zeros_is_torn(file: Path) -> None:
    """Data after a hole of zeros is reported as a tear rather than dropped silently."""
    good = model.build([model.entry(1, 0)], closed=False)
    found = agree(file, good + bytes(5000) + model.record(model.entry(1, 1)))
    assert found is not None
    assert (found.end, found.torn) == (len(good), True)


@pytest.mark.parametrize("ledger_entry", [(-2, 0), (1, -1), (-(2**63), 5)])
def test_negative_ids_are_no_entry(file: Path, ledger_entry: tuple[int, int]) -> None:
    """Of negative ledger ids only -1 has a meaning; other negative ids are damage."""
    found = agree(file, model.header() + model.record(model.entry(*ledger_entry)))
    assert found == model.Found([], 1024, torn=True)


@given(data=st.binary(max_size=1200))
@example(b"")
@example(bytes(1024))
@example(bytes(5000))
@example(b"BKLO\0\0\0\2" + bytes(2000))
@example(b"BKLO\0\0\0\0" + bytes(1016) + model.record(model.entry(1, 1)))
@settings(deadline=None)
def test_any_bytes(file: Path, data: bytes) -> None:
    """Foreign, short, empty and newer files give the model's result or its one error."""
    agree(file, data)


@given(data=st.binary(max_size=200), rest=st.binary(max_size=4200))
@settings(deadline=None)
def test_any_bytes_behind_a_header(file: Path, data: bytes, rest: bytes) -> None:
    """Any bytes after a valid header, in both layouts, give the model's result."""
    agree(file, model.header() + data + rest)
    agree(file, model.build_direct([]) + rest + data)


def test_records_longer_than_a_read(file: Path) -> None:
    """Records up to the limit are returned whole."""
    sizes = [5 << 20, 64 << 20, 20, 9 << 20]
    with file.open("wb") as out:
        out.write(model.header())
        for entry_id, size in enumerate(sizes):
            out.write(model.record(model.entry(1, entry_id) + bytes(size - 16)))
    found = scan(file)
    assert [row[3] for row in found.records] == sizes
    assert not found.torn


def test_a_length_beyond_the_file_is_torn(file: Path) -> None:
    """A record of 64 MiB of which only 2 bytes are there is torn."""
    file.write_bytes(model.header() + (64 << 20).to_bytes(4) + b"ab")
    assert scan_chunk(file).torn


def test_a_missing_file_is_an_error(tmp_path: Path) -> None:
    """The error names the file."""
    with pytest.raises(FileNotFoundError, match="nowhere"):
        scan_chunk(tmp_path / "nowhere.log")
