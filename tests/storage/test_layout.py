"""Names of files (layout): journals, entry log ids, and the leftovers of a crash or of Apache BookKeeper."""

from pathlib import Path

import pytest

from bookie.errors import StartRefused
from bookie.storage.layout import journal_files, leftover_journal_files, next_log_id


def touch(directory: Path, *names: str) -> None:
    """Create empty files."""
    for name in names:
        (directory / name).touch()


def test_journal_files(tmp_path: Path) -> None:
    """Journal files are ordered by number, and files being prepared or kept for reuse are listed separately."""
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
    """The next id is above every id that was ever used, so that no log is overwritten."""
    touch(tmp_path, *names)
    if last_id is not None:
        (tmp_path / "lastId").write_text(last_id)
    assert next_log_id(tmp_path) == expected


def test_no_next_log(tmp_path: Path) -> None:
    """An unreadable `lastId` without logs, and exhausted ids, are refused with a remedy."""
    (tmp_path / "lastId").write_text("zz")
    with pytest.raises(StartRefused, match="not a hexadecimal entry log id; remove the file"):
        next_log_id(tmp_path)
    (tmp_path / "lastId").write_text("7fffffff")
    with pytest.raises(StartRefused, match="used all entry log ids"):
        next_log_id(tmp_path)
