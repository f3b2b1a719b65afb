"""Tests of files that are replaced as a whole (`bookie.durable`)."""

from pathlib import Path

import pytest

from bookie import durable
from bookie.durable import make_directories, replace_file, write_file


def test_a_file_is_replaced_and_nothing_else_is_left(tmp_path: Path) -> None:
    """The new content stands under the old name, however long the old content was, and no other file remains."""
    for content in (b"long, and the first", b"second", b""):
        replace_file(tmp_path / "file", content)
        assert [(one.name, one.read_bytes()) for one in tmp_path.iterdir()] == [("file", content)]


def test_what_cannot_be_replaced_stays(tmp_path: Path) -> None:
    """The caller gets the error, and the new file that was written beside the old one is removed."""
    (tmp_path / "taken" / "inside").mkdir(parents=True)
    with pytest.raises(OSError, match="taken"):
        replace_file(tmp_path / "taken", b"content")
    assert [one.name for one in tmp_path.iterdir()] == ["taken"]


def test_directories_are_made_only_where_asked(tmp_path: Path) -> None:
    """No directory is created in place of a missing mount unless the caller asks for it."""
    with pytest.raises(FileNotFoundError):
        replace_file(tmp_path / "gone" / "file", b"content")
    assert not (tmp_path / "gone").exists()
    write_file(tmp_path / "gone" / "file", b"content")
    assert (tmp_path / "gone" / "file").read_bytes() == b"content"


def test_directories_of_an_attempt_that_failed_become_durable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An attempt that fails at a sync leaves a directory that only the next attempt makes durable in its parent."""
    synced: list[Path] = []

    def full(path: Path) -> None:
        if path == tmp_path / "a":
            raise OSError(28, "No space left on device", str(path))
        synced.append(path)

    monkeypatch.setattr(durable, "sync_directory", full)
    with pytest.raises(OSError, match="No space left"):
        make_directories(tmp_path / "a" / "b" / "c")
    assert (tmp_path / "a" / "b").exists()
    monkeypatch.setattr(durable, "sync_directory", synced.append)
    synced.clear()
    make_directories(tmp_path / "a" / "b" / "c")
    assert synced == [tmp_path / "a", tmp_path / "a" / "b"]
