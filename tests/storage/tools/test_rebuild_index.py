"""The index rebuilt on real directories: carried-over records, damaged logs, and a crash at every step."""

import errno
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from bookie._fast.index.view import Index, IndexDamaged, Ledger
from bookie.errors import ToolRefused
from bookie.storage.tools.index_swap import abandoned_index, new_index
from bookie.storage.tools.locking import locked
from bookie.storage.tools.rebuild_index import RebuildOptions, rebuild_index
from bookie.storage.tools.verify_index import verify_index
from tests.reference import entry_log as model

STEPS = ("begun", "scanned", "filled", "closed", "swapped", "synced")
RECORD = Ledger(1, b"k" * 20, True, False, b"lac")
FENCE = (5, 1_700_000_000_000)

DIE_AT = """
import os, sys
from pathlib import Path
from bookie.storage.tools.rebuild_index import rebuild_index
def step(name):
    if name == sys.argv[2]:
        os._exit(9)
where = Path(sys.argv[1])
rebuild_index(where, where / "locations.lmdb", step=step)
"""


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A `current` directory with two logs, and an index without the entries of the second."""
    (tmp_path / "0.log").write_bytes(model.build([model.entry(1, entry, b"old") for entry in range(5)], closed=True))
    newer = [model.entry(1, 4, b"newer"), model.entry(2, 7)]
    (tmp_path / "a.log").write_bytes(model.build(newer, closed=False))
    index = tmp_path / "locations.lmdb"
    index.mkdir()
    old = Index.open(index)
    old.begin()
    old.put_run(1, 0, 0, 1024, [19] * 5)
    old.put_ledger(*RECORD)
    old.put_fence(*FENCE)
    old.commit()
    old.close()
    return tmp_path


def seen(directory: Path) -> tuple[list[tuple[int, int]], list[Ledger]]:
    """Return (log id, entry) of everything stored for ledgers 1 and 2, and the ledger records."""
    index = Index.open(directory / "locations.lmdb")
    try:
        reader = index.reader()
        runs = [run for ledger in (1, 2) for run in reader.runs(ledger)]
        places = [(run.log_id, run.first + slot) for run in runs for slot, length in enumerate(run.lengths) if length]
        return places, reader.ledgers()
    finally:
        index.close()


def fences(directory: Path) -> list[tuple[int, int]]:
    """Return the fences of deleted ledgers."""
    index = Index.open(directory / "locations.lmdb")
    try:
        return index.reader().fences()
    finally:
        index.close()


OLD = ([(0, 0), (0, 1), (0, 2), (0, 3), (0, 4)], [RECORD])
NEW = ([(0, 0), (0, 1), (0, 2), (0, 3), (10, 4), (10, 7)], [RECORD, Ledger(2, b"", True, False, b"")])


def test_from_the_logs(directory: Path) -> None:
    """Later copies win, records are carried over, progress reaches the sum, and nothing is left beside the index."""
    reported: list[tuple[int, int]] = []
    report = rebuild_index(directory, directory / "locations.lmdb", progress=lambda *at: reported.append(at))
    assert seen(directory) == NEW
    assert (report.entries, report.odd, report.ledgers, report.torn) == (7, 0, (1, 2), ())
    assert report.without_record == (2,)
    assert [(Path(taken.path).name, taken.records) for taken in report.logs] == [("0.log", 5), ("a.log", 2)]
    total = sum(path.stat().st_size for path in directory.glob("*.log"))
    assert reported[-1] == (total, total)
    assert sorted(path.name for path in directory.iterdir()) == ["0.log", "a.log", "locations.lmdb"]


def test_fences_of_deleted_ledgers_are_carried_over(directory: Path) -> None:
    """B8: the writer of a deleted ledger stays fenced. A damaged fence is lost, and does not stop the rebuild."""
    index = directory / "locations.lmdb"
    rebuild_index(directory, index)
    assert fences(directory) == [FENCE]
    data = index / "data.mdb"
    whole = data.read_bytes()
    data.write_bytes(whole.replace(struct.pack(">q", FENCE[1]), struct.pack(">q", FENCE[1] + 1)))
    assert any("fences" in problem for problem in verify_index(index).problems)
    rebuild_index(directory, index)
    assert fences(directory) == [(FENCE[0], 1 << 62)]
    assert seen(directory) == NEW


def test_into_nothing(directory: Path) -> None:
    """Without an old index the caller passes the records, and a filter leaves other ledgers out."""
    index = directory / "elsewhere.lmdb"
    with pytest.raises(ToolRefused, match="has no ledger records"):
        rebuild_index(directory, index)
    report = rebuild_index(directory, index, ledgers=[2, 3], records=[Ledger(2, b"", False, False, b"")])
    assert report.ledgers == (2,)
    opened = Index.open(index)
    assert [record.ledger for record in opened.reader().ledgers()] == [2]
    assert opened.reader().runs(1) == []
    opened.close()


@pytest.mark.thorough
@pytest.mark.parametrize("step", STEPS)
def test_b3_a_crash_leaves_the_old_index_or_the_new(directory: Path, step: str) -> None:
    """After a crash between any two steps one index or the other exists, and the next rebuild succeeds."""
    ended = subprocess.run([sys.executable, "-c", DIE_AT, str(directory), step], check=False, timeout=60)
    assert ended.returncode == 9
    assert seen(directory) == (NEW if STEPS.index(step) >= STEPS.index("swapped") else OLD)
    rebuild_index(directory, directory / "locations.lmdb")
    assert seen(directory) == NEW
    assert not (directory / "locations.lmdb.new").exists()


def test_a_torn_log_is_told(directory: Path) -> None:
    """Records before the tear are indexed."""
    with (directory / "a.log").open("ab") as file:
        file.write(struct.pack(">i", 100) + b"cut")
    report = rebuild_index(directory, directory / "locations.lmdb")
    assert [Path(taken.path).name for taken in report.torn] == ["a.log"]
    assert seen(directory) == NEW


def test_a_foreign_log_stops_it(directory: Path) -> None:
    """Without a foreign log's entries the bookie would deny them, so it is skipped only on request, with a report."""
    (directory / "5.log").write_bytes(b"not a log" * 1000)
    with pytest.raises(ToolRefused, match=r"5\.log: not an entry log.*--skip-unreadable"):
        rebuild_index(directory, directory / "locations.lmdb")
    assert seen(directory) == OLD
    report = rebuild_index(directory, directory / "locations.lmdb", options=RebuildOptions(skip_unreadable=True))
    assert [Path(taken.path).name for taken in report.logs if taken.refused] == ["5.log"]
    assert seen(directory) == NEW


def test_a_damaged_index_gives_its_records(directory: Path) -> None:
    """The rows of entries are not needed; damaged ledger records stop the rebuild, and no file is mapped into
    memory.
    """
    data = directory / "locations.lmdb" / "data.mdb"
    whole = data.read_bytes()
    pages = {
        page: whole.find(what) // 4096
        for page, what in (("runs", struct.pack(">QI", 1024, 19)), ("records", RECORD.key))
    }
    assert pages["runs"] != pages["records"]
    data.write_bytes(whole[: pages["runs"] * 4096] + bytes(4096) + whole[(pages["runs"] + 1) * 4096 :])
    rebuild_index(directory, directory / "locations.lmdb")
    assert seen(directory) == NEW
    data.write_bytes(whole[: pages["records"] * 4096] + bytes(4096) + whole[(pages["records"] + 1) * 4096 :])
    with pytest.raises(
        ToolRefused, match=r"rebuild the index, ledger records included: bkadmin rebuild-db-ledgers-index"
    ):
        rebuild_index(directory, directory / "locations.lmdb")
    data.write_bytes(b"")
    with pytest.raises(ToolRefused, match="neither of its first two pages"):
        rebuild_index(directory, directory / "locations.lmdb")


def test_a_full_index_changes_nothing(directory: Path) -> None:
    """The error is the index's, with its errno; the old index stays."""
    (directory / "b.log").write_bytes(model.build([model.entry(ledger, 0) for ledger in range(30_000)], closed=True))
    with pytest.raises(OSError, match="index") as caught:
        rebuild_index(directory, directory / "locations.lmdb", options=RebuildOptions(map_bytes=1 << 18))
    assert caught.value.errno == errno.ENOSPC
    assert seen(directory) == OLD


def test_the_lock_of_a_bookie(tmp_path: Path) -> None:
    """Nobody can take the lock twice; the same directory may be named twice; a missing one is reported."""
    busy = pytest.raises(ToolRefused, match="in use by a bookie or another tool")
    with locked([tmp_path, tmp_path]), busy, locked([tmp_path]):
        pass
    with pytest.raises(ToolRefused, match="missing cannot be opened"), locked([tmp_path / "missing"]):
        pass


def test_a_disk_that_returns_other_than_was_written_is_an_error_of_the_system(tmp_path: Path) -> None:
    """It stops the tool, or refuses the start, with the path; what was built is removed, and the old index stays."""
    index = tmp_path / "locations.lmdb"
    with pytest.raises(OSError, match="the disk returned other than what was written") as raised, new_index(index):
        raise IndexDamaged("begin: a stored value fails its checksum")
    assert raised.value.filename == str(abandoned_index(index))
    assert list(tmp_path.iterdir()) == []
