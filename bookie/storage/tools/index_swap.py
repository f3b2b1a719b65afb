"""A new location index beside the old one, put in its place in one step: a crash leaves either, never a mixture.

`<index>.new/` is filled and synced, then its `data.mdb` is renamed over the old one. Caller's thread; the caller keeps
everybody else off the directory.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bookie._fast.index_view import Index
from bookie.durable import sync_directory
from bookie.storage.tools.progress import Step, no_step

__all__ = ["abandoned_index", "new_index"]

FILES = ("data.mdb", "lock.mdb")


def abandoned_index(index: Path) -> Path:
    """Where a new index is built; what a crash left there is removed by the next rebuild."""
    return index.with_name(f"{index.name}.new")


@contextmanager
def new_index(index: Path, *, map_bytes: int = 1 << 40, step: Step = no_step) -> Iterator[Index]:
    """An empty index to fill; it replaces the one at `index` when the block ends well, else nothing is changed.

    What the block writes it commits. Steps: begun, filled, closed, swapped, synced.
    """
    building = abandoned_index(index)
    _remove(building)
    building.mkdir(parents=True)
    opened = Index.open(building, map_bytes)
    try:
        step("begun")
        yield opened
        step("filled")
        opened.close()
        step("closed")
    except BaseException:
        opened.close()
        _remove(building)
        raise
    if not index.is_dir():
        index.mkdir()
        sync_directory(index.parent)
    sync_directory(building)
    (building / "data.mdb").replace(index / "data.mdb")
    step("swapped")
    sync_directory(index)
    step("synced")
    _remove(building)


def _remove(building: Path) -> None:
    """Only what an index consists of: another file there is somebody's, and stops the tool."""
    for name in FILES:
        (building / name).unlink(missing_ok=True)
    if building.is_dir():
        building.rmdir()
