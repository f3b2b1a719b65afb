"""Test that a commit of an index fails if the disk has lost what it wrote (index.writes)."""

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from bookie._fast.index.view import Index
from tests.fast.index_flips import PAGE, roots

SIZES = [100] * 50


def replace_descriptor(index: Path, replacement: int, *, synchronous: bool) -> None:
    """Let LMDB use another descriptor for its meta pages (synchronous), or for its other pages."""
    for link in Path("/proc/self/fd").iterdir():
        try:
            found = link.readlink() == index / "data.mdb"
            flags = int(Path(f"/proc/self/fdinfo/{link.name}").read_text().split("flags:")[1].split()[0], 8)
        except OSError:  # the descriptor of the list itself
            continue
        if found and int(link.name) != replacement and bool(flags & os.O_DSYNC) == synchronous:
            os.dup2(replacement, int(link.name))
            os.close(replacement)
            return
    raise AssertionError("LMDB has no such descriptor")


def lose_meta_pages(index: Path) -> None:
    """Let what LMDB writes to its synchronous descriptor of the file, its meta pages, arrive somewhere else."""
    elsewhere = os.open(index.with_suffix(".lost"), os.O_RDWR | os.O_CREAT, 0o600)
    replace_descriptor(index, elsewhere, synchronous=True)


def lose_other_pages(index: Path) -> None:
    """Let all other pages that LMDB writes arrive behind the end of the file: Linux appends, whatever the offset is."""
    appending = os.open(index / "data.mdb", os.O_RDWR | os.O_APPEND)
    replace_descriptor(index, appending, synchronous=False)


def put(index: Index) -> None:
    index.put_run(8, 0, 0, 1024, SIZES)


def delete_runs(index: Index) -> None:
    index.delete_runs(7, 10)


def delete_ledger(index: Index) -> None:
    index.delete_ledger(7)


def relocate(index: Index) -> None:
    assert index.relocate(7, 0, 49, 50 * 104, (0, 1024), (3, 1024))


def test_b2_other_damage_does_not_hide_a_lost_commit(tmp_path: Path) -> None:
    """B2: a commit without its meta page fails, too, if the free list of the commit before is damaged meanwhile."""
    path = tmp_path / "index"
    path.mkdir()
    index = Index.open(path)
    for entry in range(4):
        index.begin()
        index.put_run(7, entry * 100, entry, 1024, SIZES)
        index.commit()
    lose_meta_pages(path)
    index.begin()
    put(index)
    with (path / "data.mdb").open("r+b") as file:
        raw = file.read()
        free, _ = roots(raw)
        file.seek(free * PAGE)
        file.write(bytes([raw[free * PAGE] ^ 0x80]))
    with pytest.raises(OSError, match=f"Errno {errno.EIO}"):
        index.commit()
    index.close()


@pytest.mark.parametrize("change", [put, delete_runs, delete_ledger, relocate])
def test_b2_a_commit_without_its_meta_page_fails(tmp_path: Path, change: Callable[[Index], None]) -> None:
    """B2: whatever a transaction changes, its commit fails if the disk has lost its meta page."""
    path = tmp_path / "index"
    path.mkdir()
    index = Index.open(path)
    index.begin()
    index.put_run(7, 0, 0, 1024, SIZES)
    index.put_ledger(7, b"key")
    index.commit()
    lose_meta_pages(path)
    index.begin()
    change(index)
    with pytest.raises(OSError, match=f"Errno {errno.EIO}"):
        index.commit()
    index.close()


def test_b2_a_repeated_commit_is_not_mistaken_for_the_lost_one(tmp_path: Path) -> None:
    """B2: a start repeats a commit whose meta page was lost, and the disk loses the pages of the second attempt. They
    hold what the first one wrote, with the same number and as many values, but not what was put meanwhile.
    """
    path = tmp_path / "index"
    path.mkdir()
    committed, index = b"", Index.open(path)
    for first in (0, 50):
        committed = (path / "data.mdb").read_bytes()
        index.begin()
        index.put_run(7, first, 0, 1024 + first * 104, SIZES)
        index.commit()
    index.close()
    with (path / "data.mdb").open("r+b") as file:
        file.write(committed[: 2 * PAGE])
    again = Index.open(path)
    assert again.reader().lookup(7, 50) is None, "the start knows nothing of the second commit"
    again.begin()
    again.put_run(7, 50, 0, 1024 + 50 * 104, [100] * 60)
    lose_other_pages(path)
    with pytest.raises(OSError, match=f"Errno {errno.EIO}"):
        again.commit()
    again.close()
