"""Test the entry log writer: bytes on disk, new logs, ids, `lastId`, and what it does when the disk fails."""

import errno
import os
import struct
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bookie._fast.entrylog.reader import EntryLogReader
from bookie._fast.entrylog.scan import scan_entry_log
from bookie._fast.entrylog.writer import EntryLog
from tests.fixtures.draws import examples
from tests.reference import entry_log as model
from tests.reference.hexdump import golden

ENTRIES = st.lists(st.tuples(st.integers(0, 3), st.lists(st.binary(max_size=60), min_size=1, max_size=5)), max_size=12)


def test_the_worked_example(tmp_path: Path) -> None:
    """The log of the format document's two entries, written in one run and closed, has the documented bytes."""
    expected = golden("entry_log.hex")
    log = EntryLog(tmp_path, next_id=1)
    assert log.append(7, [expected[1028:1069], expected[1073:1115]]) == (1, 1024)
    log.sync()
    open_file = (tmp_path / "1.log").read_bytes()
    assert open_file == (model.header() + expected[1024:1115]).ljust(4096, b"\0")
    log.rotate()
    assert (tmp_path / "1.log").read_bytes() == expected
    assert (tmp_path / "lastId").read_text() == "1\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["1.log", "lastId"]


def test_nothing_is_created_before_the_first_append(tmp_path: Path) -> None:
    """A writer without an append creates no log."""
    log = EntryLog(tmp_path, next_id=5)
    log.sync()
    log.rotate()
    assert list(tmp_path.iterdir()) == []
    assert log.current_id == 5


@settings(deadline=None)
@given(runs=ENTRIES, limit=st.integers(1024, 1400))
def test_like_the_model(
    tmp_path_factory: pytest.TempPathFactory, runs: list[tuple[int, list[bytes]]], limit: int
) -> None:
    """With any runs and any small limit, each log is what the model builds, and each run is where the writer said."""
    directory = tmp_path_factory.mktemp("logs")
    log = EntryLog(directory, next_id=0x1A, size_limit=limit)
    logs: dict[int, list[bytes]] = {}
    entry_id = 0
    for ledger, payloads in runs:
        entries = [model.entry(ledger, entry_id + i, payload) for i, payload in enumerate(payloads)]
        entry_id += len(entries)
        log_id, offset = log.append(ledger, entries)
        before = logs.setdefault(log_id, [])
        assert offset == 1024 + sum(len(data) + 4 for data in before)
        before += entries
    log.rotate()
    assert sorted(logs) == list(range(0x1A, 0x1A + len(logs)))
    for log_id, entries in logs.items():
        data = (directory / f"{log_id:x}.log").read_bytes()
        assert data == model.build(entries, closed=True)
        runs_in_it = len(data) - 1024 - len(model.ledgers_map(model.read_map(data) or {}))
        assert 1024 + runs_in_it <= limit or len({entry[:8] for entry in entries}) == 1
    if logs:
        assert (directory / "lastId").read_text() == f"{max(logs):x}\n"


def test_a_run_is_never_split(tmp_path: Path) -> None:
    """A run that does not fit goes into the next log as a whole, and one above the limit gets a log of its own."""
    log = EntryLog(tmp_path, size_limit=2048)
    small = [model.entry(1, 0, bytes(480))]
    large = [model.entry(1, i, bytes(500)) for i in range(1, 6)]
    assert log.append(1, small) == (0, 1024)
    assert log.append(1, small) == (0, 1024 + 500)
    assert log.append(1, large) == (1, 1024)
    assert log.append(1, small) == (2, 1024)


def test_more_ledgers_than_one_map_record_holds(tmp_path: Path) -> None:
    """A map of 25,000 ledgers needs three records, and has each ledger once with its bytes."""
    log = EntryLog(tmp_path)
    for ledger in range(25_000, 0, -1):
        log.append(ledger, [struct.pack(">qq", ledger, 0)])
    log.append(77, [struct.pack(">qq", 77, 1)])
    log.rotate()
    data = (tmp_path / "0.log").read_bytes()
    assert model.read_map(data) == {ledger: 40 if ledger == 77 else 20 for ledger in range(1, 25_001)}
    chunks = list(scan_entry_log(tmp_path / "0.log"))
    assert sum(len(chunk.ledger) for chunk in chunks) == 25_001
    assert not chunks[-1].torn
    assert chunks[-1].end == len(data)


def test_existing_names_are_skipped(tmp_path: Path) -> None:
    """An existing log is never overwritten: its id is skipped."""
    (tmp_path / "3.log").write_bytes(b"old")
    log = EntryLog(tmp_path, next_id=3)
    assert log.append(1, [model.entry(1, 0)])[0] == 4
    assert (tmp_path / "3.log").read_bytes() == b"old"
    assert (tmp_path / "lastId").read_text() == "4\n"


def test_ids_wrap_as_upstream_does(tmp_path: Path) -> None:
    """After 7fffffff comes 0, or the next id without a file."""
    (tmp_path / "0.log").write_bytes(b"")
    log = EntryLog(tmp_path, next_id=0x7FFFFFFF)
    assert log.append(1, [model.entry(1, 0)])[0] == 0x7FFFFFFF
    log.rotate()
    assert log.append(1, [model.entry(1, 1)])[0] == 1


def test_reserved_blocks_go_back(tmp_path: Path) -> None:
    """Neither a closed log nor one whose writer is gone keeps reserved blocks after its end."""
    log = EntryLog(tmp_path)
    log.append(1, [model.entry(1, 0)])
    reserved = (tmp_path / "0.log").stat().st_blocks
    log.rotate()
    log.append(1, [model.entry(1, 1)])
    log.sync()
    del log
    for name in ("0.log", "1.log"):
        assert (tmp_path / name).stat().st_blocks <= min(reserved, 16)


def test_what_was_not_synced_goes_with_the_writer(tmp_path: Path) -> None:
    """When its writer is freed, a log is truncated at its last sync, and removed if it was never synced."""
    log = EntryLog(tmp_path, size_limit=8192)
    entries = [model.entry(1, i, os.urandom(700)) for i in range(4)]
    log.append(1, entries[:1])
    log.sync()
    log.append(1, entries[1:])
    del log
    assert (tmp_path / "0.log").read_bytes() == model.build(entries[:1], closed=False)
    log = EntryLog(tmp_path)
    log.append(1, entries)
    del log
    assert not (tmp_path / "1.log").exists()


@given(sizes=st.lists(st.lists(st.integers(0, 9000), min_size=1, max_size=4), min_size=1, max_size=6))
@settings(deadline=None, max_examples=examples(50))
def test_every_sync_covers_all(tmp_path_factory: pytest.TempPathFactory, sizes: list[list[int]]) -> None:
    """After each sync an open log has the model's bytes, and zeros up to the end of the block."""
    directory = tmp_path_factory.mktemp("logs")
    log = EntryLog(directory)
    entries: list[bytes] = []
    for step in sizes:
        for size in step:
            entries.append(model.entry(1, len(entries), os.urandom(size)))
            log.append(1, entries[-1:])
        log.sync()
        expected = model.build(entries, closed=False)
        assert (directory / "0.log").read_bytes() == expected.ljust(-(-len(expected) // 4096) * 4096, b"\0")


def test_large_slices_arrive_whole(tmp_path: Path) -> None:
    """Slices larger than the buffer, and many small ones, are written in order."""
    entries = [model.entry(1, i, os.urandom(size)) for i, size in enumerate([17 << 20, 5, 9 << 20, *[3000] * 3000])]
    log = EntryLog(tmp_path)
    log_id, offset = log.append(1, entries)
    log.sync()
    expected = b"".join(map(model.record, entries))
    assert EntryLogReader(tmp_path).read(log_id, offset, len(expected)) == expected


def test_an_empty_run_is_refused(tmp_path: Path) -> None:
    """An empty run is refused, and no file is created."""
    with pytest.raises(ValueError, match="at least 1 record"):
        EntryLog(tmp_path).append(1, [])
    assert list(tmp_path.iterdir()) == []


def test_a_missing_directory_is_an_error(tmp_path: Path) -> None:
    """The writer stays failed even if the directory appears later."""
    log = EntryLog(tmp_path / "gone")
    with pytest.raises(OSError, match="error"):
        log.append(1, [model.entry(1, 0)])
    (tmp_path / "gone").mkdir()
    with pytest.raises(OSError, match="error") as failed:
        log.append(1, [model.entry(1, 0)])
    assert failed.value.errno == errno.EIO


@given(
    steps=st.lists(
        st.tuples(
            st.integers(0, 3), st.sampled_from(["append", "append", "append", "sync", "rotate"]), st.integers(1, 9)
        ),
        max_size=40,
    ),
    scale=st.sampled_from([1, 700, 300_000]),
)
@settings(deadline=None, max_examples=examples(40))
def test_writers_share_one_buffer(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[int, str, int]], scale: int
) -> None:
    """Several writers of a directory append in turn, and each log contains exactly what its writer was given."""
    directory = tmp_path_factory.mktemp("logs")
    first = EntryLog(directory)
    writers = [first, *(EntryLog(directory, beside=first) for _ in range(3))]
    ids: dict[int, int] = {}
    held: dict[int, list[bytes]] = {}
    for which, action, size in steps:
        if action == "append":
            log_id = ids.get(which, -1)
            data = model.entry(which, len(held.get(log_id, [])), os.urandom(size * scale))
            log_id, _ = writers[which].append(which, [data])
            ids[which] = log_id
            held.setdefault(log_id, []).append(data)
        elif action == "sync":
            writers[which].sync()
            if which in ids:
                expected = model.build(held[ids[which]], closed=False)
                found = (directory / f"{ids[which]:x}.log").read_bytes()
                assert found == expected.ljust(-(-len(expected) // 4096) * 4096, b"\0")
        else:
            writers[which].rotate()
            if which in ids:
                log_id = ids.pop(which)
                assert (directory / f"{log_id:x}.log").read_bytes() == model.build(held[log_id], closed=True)
    for which, log_id in ids.items():
        writers[which].rotate()
        assert (directory / f"{log_id:x}.log").read_bytes() == model.build(held[log_id], closed=True)


def test_a_log_is_open_until_its_commit(tmp_path: Path) -> None:
    """A log is open until it was rotated and settled; only then may it be collected."""
    log = EntryLog(tmp_path)
    log.append(1, [model.entry(1, 0)])
    assert log.is_open(0)
    log.rotate()
    assert log.is_open(0)
    log.settle()
    assert not log.is_open(0)
    log.append(1, [model.entry(1, 1)])
    log.settle()
    assert log.is_open(1)
