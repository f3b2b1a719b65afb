"""Files that an interrupted transactional compaction of a Java bookie leaves beside the entry logs.

`<dst>.log.compacting` is an unfinished copy, whose source still exists. `<dst>.log.<src>.compacted` is a finished
copy under its last temporary name; it becomes `<dst>.log`, and its source is deleted. Apache BookKeeper's own
recovery writes the first name in decimal (`26.log` for 1a): a scan finds the entries there too, under the id in the
name. Main thread, at start.
"""

import logging
import re
from pathlib import Path

from bookie.durable import sync_directory

__all__ = ["adopt_orphans", "remove_leftovers"]

log = logging.getLogger(__name__)

COMPACTED = re.compile(r"^([0-9a-f]{1,8})\.log\.([0-9a-f]{1,8})\.compacted$")
COMPACTING = re.compile(r"^[0-9a-f]{1,8}\.log\.compacting$")


def _compacted(current: Path) -> list[tuple[Path, Path, Path]]:
    """Return (the finished copy, its log, its source) of each finished copy."""
    names = ((path, COMPACTED.match(path.name)) for path in sorted(current.iterdir()))
    return [(path, current / f"{name[1]}.log", current / f"{name[2]}.log") for path, name in names if name]


def adopt_orphans(current: Path) -> None:
    """Give a finished copy its final name if its source is gone and the same file has no other name, because it is
    then the only copy. The names are synced on return, because the index that will rely on them may be on another
    disk.
    """
    inodes = {path.stat().st_ino for path in current.glob("*.log")}
    for path, target, source in _compacted(current):
        if source.exists() or target.exists() or path.stat().st_ino in inodes:
            continue
        log.info("the finished copy of a compacted entry log was adopted file=%s as=%s", path, target.name)
        target.hardlink_to(path)
    sync_directory(current)


def remove_leftovers(current: Path) -> None:
    """Remove the files that `adopt_orphans` and the scan made superfluous. The logs themselves stay."""
    for path, target, source in _compacted(current):
        if source.exists() or target.exists() or path.stat().st_nlink > 1:
            path.unlink()
    for path in sorted(current.iterdir()):
        if COMPACTING.match(path.name):
            path.unlink()
