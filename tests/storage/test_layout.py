"""Names of files (layout): marks, journals, entry log ids, and what a crash or Apache BookKeeper leaves there."""

import struct
from pathlib import Path

import pytest

from bookie.errors import StartRefused
from bookie.storage.layout import journal_files, leftover_journal_files, mark_name, next_log_id, read_mark


def touch(directory: Path, *names: str) -> None:
    """Empty files."""
    for name in names:
        (directory / name).touch()


def test_marks(tmp_path: Path) -> None:
    """The highest of all directories: each was written after everything before it was flushed everywhere."""
    assert [mark_name(0, 1), mark_name(0, 2), mark_name(1, 2)] == ["lastMark", "lastMark.0", "lastMark.1"]
    directories = [tmp_path / "a", tmp_path / "b", tmp_path / "c"]
    for directory in directories:
        directory.mkdir()
    assert read_mark(directories, "lastMark") == (0, 0)
    (directories[0] / "lastMark").write_bytes(struct.pack(">qq", 7, 4096))
    (directories[1] / "lastMark").write_bytes(struct.pack(">qq", 7, 8192) + b"more")
    (directories[2] / "lastMark").write_bytes(b"short")
    assert read_mark(directories, "lastMark") == (7, 8192)


def test_journal_files(tmp_path: Path) -> None:
    """By number, not by name; what was being prepared or kept for reuse is apart."""
    touch(tmp_path, "9.txn", "10.txn", "1a2b3c4d5e6.txn", "b.preparing", "8.spare", "1.log", "lastMark", "x.txn")
    assert journal_files(tmp_path) == [0x9, 0x10, 0x1A2B3C4D5E6]
    assert sorted(path.name for path in leftover_journal_files(tmp_path)) == ["8.spare", "b.preparing"]


@pytest.mark.parametrize(
    ("names", "last_id", "expected"),
    [
        ([], None, 0),
        (["0.log"], None, 1),
        (["0.log", "ff.log"], "3", 0x100),
        (["2.log"], "1f\n", 0x20),
        (["2.log", "7.log.compacting"], None, 8),
        (["2.log", "7.log.b.compacted"], None, 12),
        (["2.log"], "not a number", 3),
    ],
)
def test_the_next_log(tmp_path: Path, names: list[str], last_id: str | None, expected: int) -> None:
    """Above every id that was ever handed out: a log is never written over."""
    touch(tmp_path, *names)
    if last_id is not None:
        (tmp_path / "lastId").write_text(last_id)
    assert next_log_id(tmp_path) == expected


def test_no_next_log(tmp_path: Path) -> None:
    """Nothing is guessed: an unreadable `lastId` without logs, and ids that are used up, are refused with a remedy."""
    (tmp_path / "lastId").write_text("zz")
    with pytest.raises(StartRefused, match="not a hexadecimal entry log id; remove the file"):
        next_log_id(tmp_path)
    (tmp_path / "lastId").write_text("7fffffff")
    with pytest.raises(StartRefused, match="used up all entry log ids"):
        next_log_id(tmp_path)
