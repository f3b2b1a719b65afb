"""Building a new location index beside the old one, and replacing that atomically: a crash leaves either, never a
mixture.

`<index>.new/` is filled and synced, then its `data.mdb` is renamed over the old one. Runs on the caller's thread; the
caller keeps everybody else off the directory.
"""

import errno
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bookie._fast.index.view import Index, IndexDamaged
from bookie.durable import PRIVATE_DIRECTORY, make_directories, replace_file, sync_directory
from bookie.storage.tools.progress import Step, no_step

__all__ = ["abandoned_index", "make_room", "new_index"]

LOCK_BYTES = 64 << 10
"""The size for which blocks of `lock.mdb` are allocated: more than LMDB's reader table needs."""
FILES = ("data.mdb", "lock.mdb")


def abandoned_index(index: Path) -> Path:
    """Return the directory in which a new index is built; the next rebuild removes what a crash left there."""
    return index.with_name(f"{index.name}.new")


def make_room(building: Path) -> None:
    """Create an empty directory for a new index, with the blocks of its lock file allocated: LMDB maps that file, and
    a full disk would end the process by SIGBUS. Raises OSError if there is no space.
    """
    shutil.rmtree(building, ignore_errors=True)
    building.mkdir(PRIVATE_DIRECTORY)
    replace_file(building / "lock.mdb", bytes(LOCK_BYTES))


@contextmanager
def new_index(index: Path, *, map_bytes: int = 1 << 40, step: Step = no_step) -> Iterator[Index]:
    """Yield an empty index to fill. It replaces the one at `index` if the block ends normally; otherwise nothing is
    changed.

    The block commits its own writes. Steps: begun, filled, closed, swapped, synced. Raises OSError if the disk returns
    other than what the block has written.
    """
    building = abandoned_index(index)
    _remove(building)
    make_directories(building.parent)
    make_room(building)
    opened = Index.open(building, map_bytes)
    try:
        step("begun")
        yield opened
        step("filled")
        opened.close()
        step("closed")
    except BaseException as error:
        opened.close()
        _remove(building)
        if isinstance(error, IndexDamaged):
            text = f"the disk returned other than what was written ({error}); check the disk, then try again"
            raise OSError(errno.EIO, text, str(building)) from error
        raise
    index.mkdir(PRIVATE_DIRECTORY, exist_ok=True)
    sync_directory(index.parent)
    sync_directory(building)
    (building / "data.mdb").replace(index / "data.mdb")
    step("swapped")
    sync_directory(index)
    step("synced")
    _remove(building)


def _remove(building: Path) -> None:
    """Remove only the files of an index, and what a crash left of writing one. Any other file there makes `rmdir` fail,
    which stops the tool.
    """
    for name in FILES:
        for path in (building / name, *building.glob(f".{name}.*")):
            path.unlink(missing_ok=True)
    if building.is_dir():
        building.rmdir()
