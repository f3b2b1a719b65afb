"""The check of journal files: counts by kind, the mark, torn ends and damage. Nothing is changed."""

import struct
from pathlib import Path

from bookie.storage.layout import journal_files
from bookie.storage.marks import read_mark
from bookie.storage.tools.check_journals import check_journals
from tests.reference import journal as model
from tests.storage.opened import Opened

ID = 0x18C
KEY = model.record(7, model.MASTER_KEY, struct.pack(">i", 20) + bytes(range(20)))
LAC = model.record(8, model.LAC, struct.pack(">i", 20) + bytes(20))


def entries(count: int) -> bytes:
    """Return records of ledger 7."""
    return b"".join(model.record(7, entry, bytes(40)) for entry in range(count))


def write(directory: Path, file_id: int, *groups: bytes) -> bytearray:
    """Write a journal file of ours."""
    data = model.build(list(groups), file_id)
    (directory / f"{file_id:x}.txn").write_bytes(data)
    return bytearray(data)


def test_a_sound_journal(tmp_path: Path) -> None:
    """Kinds and groups are counted, the mark is in its file, and earlier files are not replayed."""
    write(tmp_path, ID, KEY + entries(5))
    data = write(tmp_path, ID + 1, entries(2), model.record(8, model.FENCE) + LAC)
    first, second = check_journals(tmp_path, (ID + 1, 1024))
    assert first.sound
    assert second.sound
    assert (first.records, first.entries, first.keys, first.groups, first.to_replay) == (6, 5, 1, 1, False)
    assert (second.fences, second.lacs, second.ledgers, second.mark, second.to_replay) == (1, 1, 2, 1024, True)
    assert (second.end, second.version) == (len(data), 6)


def test_the_mark(tmp_path: Path) -> None:
    """A missing file of the mark, or one that ends before it, is reported."""
    write(tmp_path, ID, entries(2))
    gone, there = check_journals(tmp_path, (5, 512))
    assert "the journal file 5.txn that the mark names is missing" in gone.problem
    assert not gone.sound
    assert there.sound
    (behind,) = check_journals(tmp_path, (ID, 1 << 20))
    assert "but the mark is at 1048576" in behind.problem


def test_torn_and_damaged(tmp_path: Path) -> None:
    """The end of the last file may be torn; damage in the middle, and a torn file before others, are reported."""
    data = write(tmp_path, ID, entries(3), entries(4), entries(5))
    path = tmp_path / f"{ID:x}.txn"
    path.write_bytes(data[:-300])
    (found,) = check_journals(tmp_path)
    assert (found.torn, found.sound, found.groups) == (True, True, 2)
    write(tmp_path, ID + 1)
    assert all(one.sound for one in check_journals(tmp_path))
    write(tmp_path, ID + 2, entries(1))
    assert [one.sound for one in check_journals(tmp_path)] == [True, True, False]

    second = 512 + len(model.group(entries(3), 512, ID))
    data[second + 30] ^= 1
    path.write_bytes(data)
    found = next(check_journals(tmp_path))
    assert (found.sound, found.damaged_at, found.groups) == (False, second, 1)
    data[second : second + 512] = bytes(512)
    path.write_bytes(data)
    assert not next(check_journals(tmp_path)).sound


def test_foreign_files_do_not_stop_it(tmp_path: Path) -> None:
    """A foreign file is reported in one line, and the next file is checked."""
    (tmp_path / "1.txn").write_bytes(b"BKLG" + struct.pack(">i", 77) + bytes(600))
    write(tmp_path, ID, entries(2))
    foreign, good = check_journals(tmp_path)
    assert "not a journal" in foreign.problem
    assert good.sound


def test_journals_of_a_bookie(tmp_path: Path) -> None:
    """The journals of a real bookie are sound, after a crash and after a clean shutdown."""
    for end in ("crash", "stop"):
        opened = Opened(tmp_path)
        for entry in range(30):
            opened.direct.add(struct.pack(">qqqq", 1, entry, -1, 0), b"k" * 20)
        opened.direct.fence(2, b"k" * 20)
        assert opened.direct.commit()
        getattr(opened, end)()
        current = opened.journal_dirs[0] / "current"
        mark = read_mark(opened.ledger_dirs[0] / "current" / "lastMark")
        assert mark is not None
        before = {path: path.stat().st_mtime_ns for path in current.iterdir()}
        found = list(check_journals(current, mark[:2]))
        assert all(one.sound for one in found), found
        assert len(found) == len(journal_files(current))
        assert any(one.entries == 30 and one.fences == 1 for one in found)
        assert {path: path.stat().st_mtime_ns for path in current.iterdir()} == before
