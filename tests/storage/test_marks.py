"""Marks of ledger directories that disagree, are damaged, or point beyond what the files hold (marks, last_mark)."""

import shutil
import struct
import threading
from pathlib import Path
from types import ModuleType

import pytest

from bookie.errors import StartRefused
from bookie.storage.marks import Mark, find_marks, mark_name, read_mark
from tests.reference.storage import entry
from tests.storage.opened import MIB, Opened


def fill(one: Opened, first: int, count: int, size: int = 100) -> None:
    """Add durable entries of ledgers 0 and 1, one in each of two directories."""
    for at in range(first, first + count):
        for ledger in range(2):
            one.direct.add(entry(ledger, at, payload=bytes(size)))
        assert one.direct.commit()


def held(one: Opened, ledger: int, count: int) -> int:
    """Return how many entries there are from 0 on."""
    found = one.direct.read(ledger, 0, count=count, size=MIB)
    total = found.count
    found.release()
    return total


def roll_back(root: Path, directory: str) -> None:
    """Restore the copy of a directory, as a snapshot or a disk controller does."""
    shutil.rmtree(root / directory)
    shutil.copytree(root / "before" / directory, root / directory)


def grown(root: Path, *, rounds: int = 1, backups_max: int = 5) -> None:
    """Create two ledger directories with ten entries per ledger, copy them to `before`, and add and flush more."""
    one = Opened(root, ledger_dirs=2, backups_max=backups_max)
    fill(one, 0, 10)
    one.stop()
    for name in ("ledgers-0", "ledgers-1"):
        shutil.copytree(root / name, root / "before" / name)
    for at in range(rounds):
        one = Opened(root, ledger_dirs=2, backups_max=backups_max)
        fill(one, 10 * (at + 1), 10)
        one.stop()


def test_b4_a_mark_is_as_old_as_the_flush_that_it_stands_for(tmp_path: Path, faulty: ModuleType) -> None:
    """Entries that are acknowledged while a flush waits for the disk are not covered by its mark: a start replays
    them.
    """
    one = Opened(tmp_path, ledger_dirs=2, files=faulty.FaultyFiles())
    fill(one, 0, 10)
    rule = faulty.plan("fdatasync", "STALL", suffix=".log")
    flush = threading.Thread(target=one.checkpoint)
    flush.start()
    try:
        assert faulty.wait_hit(rule, 60)
        fill(one, 10, 10)
    finally:
        faulty.release()
        flush.join()
        faulty.clear()
    one.crash()
    again = Opened(tmp_path, ledger_dirs=2)
    assert again.report.entries == 20
    assert [held(again, ledger, 100) for ledger in range(2)] == [20, 20]
    again.stop()


@pytest.mark.parametrize("directory", [0, 1])
def test_b4_a_directory_that_went_back_is_replayed_from_its_own_mark(tmp_path: Path, directory: int) -> None:
    """The journal still has the lost entries; nothing is denied, and the other directory is not replayed again."""
    grown(tmp_path)
    roll_back(tmp_path, f"ledgers-{directory}")
    one = Opened(tmp_path, ledger_dirs=2)
    assert one.report.entries == 10
    assert [held(one, ledger, 100) for ledger in range(2)] == [20, 20]
    one.stop()


def test_b4_all_directories_went_back(tmp_path: Path) -> None:
    """Nothing newer shows that they were restored, and their marks are right nevertheless."""
    grown(tmp_path)
    for name in ("ledgers-0", "ledgers-1"):
        roll_back(tmp_path, name)
    one = Opened(tmp_path, ledger_dirs=2)
    assert [held(one, ledger, 100) for ledger in range(2)] == [20, 20]
    one.stop()


def test_b4_a_directory_that_went_back_too_far(tmp_path: Path) -> None:
    """The journal file that the old mark names is gone: the start is refused, and names both and the remedy."""
    grown(tmp_path, rounds=3, backups_max=0)
    roll_back(tmp_path, "ledgers-1")
    with pytest.raises(StartRefused, match=r"ledgers-1.*lastMark names .*\.txn.*missing from .*journal-0.*restore"):
        Opened(tmp_path, ledger_dirs=2)


def test_b4_a_ledger_that_was_deleted_since(tmp_path: Path) -> None:
    """B14: the ledger is not restored in the directory that was not restored."""
    grown(tmp_path)
    one = Opened(tmp_path, ledger_dirs=2)
    one.storage.collectors()[0].delete_ledgers([0])
    one.stop()
    roll_back(tmp_path, "ledgers-1")
    one = Opened(tmp_path, ledger_dirs=2)
    assert one.direct.ledger(0) is None
    assert held(one, 1, 100) == 20
    one.stop()


def test_b4_a_journal_file_in_the_middle_is_gone(tmp_path: Path) -> None:
    """Entries in it would be denied, so the start is refused."""
    grown(tmp_path, rounds=2)
    roll_back(tmp_path, "ledgers-0")
    journal = tmp_path / "journal-0" / "current"
    files = sorted(journal.glob("*.txn"))
    files[-2].unlink()
    with pytest.raises(StartRefused, match=rf"journal file {files[-2].name} .* is missing from {journal}"):
        Opened(tmp_path, ledger_dirs=2)


@pytest.mark.parametrize("kept", [0.5, 0.9])
def test_b4_a_mark_beyond_what_the_journal_holds(tmp_path: Path, kept: float) -> None:
    """The journal was truncated or restored: entries after the mark may be lost with those before it."""
    one = Opened(tmp_path, ledger_dirs=2)
    fill(one, 0, 50)
    one.checkpoint()
    one.crash()
    mark = read_mark(tmp_path / "ledgers-0/current/lastMark")
    assert mark is not None
    path = tmp_path / "journal-0" / "current" / f"{mark.file_id:x}.txn"
    content = path.read_bytes()
    end = int(mark.offset * kept)
    for lacking in (content[:end], content[:end] + bytes(len(content) - end)):
        path.write_bytes(lacking)
        with pytest.raises(StartRefused, match=rf"lastMark.*{mark.offset}.*{path.name}.*skipReplayJournal"):
            Opened(tmp_path, ledger_dirs=2)
    one = Opened(tmp_path, ledger_dirs=2, skip_damaged_journal=True)
    assert [held(one, ledger, 100) for ledger in range(2)] == [50, 50]
    one.stop()


@pytest.mark.parametrize("at", range(32))
def test_b4_a_damaged_mark_is_not_believed(tmp_path: Path, at: int) -> None:
    """Any flipped bit is noticed, and the complete journal is replayed instead."""
    one = Opened(tmp_path, ledger_dirs=2)
    fill(one, 0, 3)
    one.crash()
    path = tmp_path / "ledgers-1/current/lastMark"
    content = bytearray(path.read_bytes())
    assert len(content) == 32
    content[at] ^= 0x10
    path.write_bytes(bytes(content))
    with pytest.raises(ValueError, match="lastMark"):
        read_mark(path)
    one = Opened(tmp_path, ledger_dirs=2)
    assert [held(one, ledger, 100) for ledger in range(2)] == [3, 3]
    one.stop()
    assert read_mark(path) == read_mark(tmp_path / "ledgers-0/current/lastMark")


def test_b15_a_mark_without_room_for_another_file(tmp_path: Path, faulty: ModuleType) -> None:
    """The mark is written in place, so a start on the full disk needs no memory for indexed entries."""
    one = Opened(tmp_path, files=faulty.FaultyFiles(), ledger_dirs=2)
    one.checkpoint()
    fill(one, 0, 50)
    faulty.plan("open", "ENOSPC", times=-1, suffix="lastMark.tmp")
    with pytest.raises(OSError, match="no space left"):
        one.checkpoint()
    assert one.storage.full_directories() == {tmp_path / "ledgers-0", tmp_path / "ledgers-1"}
    one.crash()
    one = Opened(tmp_path, ledger_dirs=2)
    assert one.report.entries == 0
    assert [held(one, ledger, 100) for ledger in range(2)] == [50, 50]
    one.stop()


def test_b15_a_start_without_room_for_another_file(tmp_path: Path, faulty: ModuleType) -> None:
    """The marks are written in place, so the checkpoint of the start gives up the journal files that it has replayed.
    They need no care any more, and the start succeeds, as does the next one.
    """
    one = Opened(tmp_path, ledger_dirs=2, backups_max=0)
    one.checkpoint()
    fill(one, 0, 50)
    one.crash()
    before = {path.name for path in (tmp_path / "journal-0/current").glob("*.txn")}
    faulty.plan("open", "ENOSPC", times=-1, suffix="ledgers-1/current/lastMark.tmp")
    one = Opened(tmp_path, files=faulty.FaultyFiles(), ledger_dirs=2, backups_max=0)
    assert one.report.entries == 100
    assert one.storage.full_directories() == {tmp_path / "ledgers-1"}
    assert not before & {path.name for path in (tmp_path / "journal-0/current").glob("*.txn")}
    one.crash()
    faulty.clear()
    one = Opened(tmp_path, ledger_dirs=2)
    assert [held(one, ledger, 100) for ledger in range(2)] == [50, 50]
    one.stop()


def test_what_apache_bookkeeper_reads(tmp_path: Path) -> None:
    """The first 16 bytes are Apache BookKeeper's mark. Generations grow by one per checkpoint, over restarts too."""
    seen = []
    for _ in range(2):
        one = Opened(tmp_path, ledger_dirs=2)
        one.checkpoint()
        seen += [read_mark(tmp_path / f"ledgers-{at}/current/lastMark") for at in range(2)]
        one.crash()
    assert all(seen)
    assert [mark.generation for mark in seen if mark] == [2, 2, 4, 4]
    data = (tmp_path / "ledgers-0/current/lastMark").read_bytes()
    assert struct.unpack_from(">qq", data) == (seen[-1] or Mark())[:2]
    assert data[16:20] == b"BKLM"


def test_marks_of_a_java_bookie(tmp_path: Path) -> None:
    """A Java bookie only logs that it could not write a mark, so its highest one counts; ours counts by directory."""
    directories = [tmp_path / name for name in ("a", "b", "c", "d")]
    for directory in directories:
        directory.mkdir()
    (directories[0] / "lastMark").write_bytes(struct.pack(">qq", 7, 4096))
    (directories[1] / "lastMark").write_bytes(struct.pack(">qq", 7, 8192))
    (directories[2] / "lastMark").write_bytes(b"short")
    low, high = Mark(7, 4096), Mark(7, 8192)
    assert find_marks(directories, 1) == [[low, high, Mark(), Mark()]]
    assert find_marks(directories, 1, taken_over=True) == [[high] * 4]
    assert find_marks(directories, 2) == [[Mark()] * 4] * 2
    assert [mark_name(0, 1), mark_name(0, 2), mark_name(1, 2)] == ["lastMark", "lastMark.0", "lastMark.1"]
