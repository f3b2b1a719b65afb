"""Tests of files that are read again when they change."""

from pathlib import Path

from bookie.changed_files import ChangedFiles


def test_each_change_is_told_once(tmp_path: Path) -> None:
    """A file that is written, replaced, created or removed has changed once; an empty path names no file."""
    one, other = tmp_path / "one", tmp_path / "other"
    one.write_text("a")
    files = ChangedFiles(str(one), "", str(other))
    assert not files.changed()
    one.write_text("ab")
    assert [files.changed(), files.changed()] == [True, False]
    fresh = tmp_path / "fresh"
    fresh.write_text("cd")
    fresh.rename(one)
    assert [files.changed(), files.changed()] == [True, False]
    other.write_text("")
    assert [files.changed(), files.changed()] == [True, False]
    one.unlink()
    assert [files.changed(), files.changed()] == [True, False]


def test_a_change_of_mode_counts(tmp_path: Path) -> None:
    """A file that was refused because others could read it is read again once they cannot."""
    one = tmp_path / "one"
    one.write_text("a")
    one.chmod(0o644)
    files = ChangedFiles(str(one))
    one.chmod(0o600)
    assert [files.changed(), files.changed()] == [True, False]
