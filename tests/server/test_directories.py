"""Directories of a bookie: created and removed again, locked against a second holder, marked while in use."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bookie.errors import StartRefused
from bookie.server.disks.directories import Directories


def tree(path: Path) -> list[str]:
    return sorted(str(found.relative_to(path)) for found in path.rglob("*"))


def test_acquire_makes_what_is_missing_and_abandon_takes_it_back(tmp_path: Path) -> None:
    """A refused start leaves no new directory behind, not even parents; existing ones stay."""
    (tmp_path / "there").mkdir()
    locks = Directories([tmp_path / "a/b/journal", tmp_path / "a/b/ledgers", tmp_path / "there"])
    locks.acquire()
    assert tree(tmp_path) == ["a", "a/b", "a/b/journal", "a/b/ledgers", "there"]
    locks.abandon()
    locks.abandon()
    assert tree(tmp_path) == ["there"]


def test_abandon_keeps_what_is_in_use(tmp_path: Path) -> None:
    """After `keep`, and wherever something was written, directories stay."""
    first, second = Directories([tmp_path / "a"]), Directories([tmp_path / "b"])
    first.acquire()
    first.keep()
    first.abandon()
    second.acquire()
    (tmp_path / "b/file").touch()
    second.abandon()
    assert tree(tmp_path) == ["a", "b", "b/file"]


def test_one_directory_in_several_roles(tmp_path: Path) -> None:
    """Journal and ledgers may share a directory, even under different names, without locking each other out."""
    (tmp_path / "d").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "d")
    locks = Directories([tmp_path / "d", tmp_path / "d", tmp_path / "link"])
    locks.acquire()
    locks.abandon()


HOLD = """
import sys
from pathlib import Path
from pathlib import Path
from bookie.server.disks.directories import Directories
Directories([Path(sys.argv[1])]).acquire()
print("held", flush=True)
sys.stdin.read()
"""


def test_a_second_process_is_refused_until_the_first_dies(tmp_path: Path) -> None:
    """The lock belongs to the process: it is held while the process lives, and free as soon as that is killed."""
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path / "d")], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with holder:
        assert holder.stdout
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(StartRefused, match="another bookie process uses this directory"):
            Directories([tmp_path / "d"]).acquire()
        holder.kill()
    locks = Directories([tmp_path / "d"])
    locks.acquire()
    locks.abandon()


def test_no_directory(tmp_path: Path) -> None:
    """A file in place of the directory, or above it, is refused by name, and nothing is left."""
    (tmp_path / "file").touch()
    for path in (tmp_path / "file", tmp_path / "file/below"):
        with pytest.raises(StartRefused, match=str(path)):
            Directories([tmp_path / "fresh", path]).acquire()
        assert tree(tmp_path) == ["file"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_not_writable(tmp_path: Path) -> None:
    """A directory of another user is refused by name."""
    tmp_path.chmod(0o555)
    with pytest.raises(StartRefused, match="not writable"):
        Directories([tmp_path]).acquire()
