"""The effect of a power failure: writes that no sync covers are undone, sector by sector at random.

volatile_disk.c recorded them. The process is dead; this runs in the test, which owns the files.
"""

import os
import random
import struct
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bookie.server.disks.dirty import boot_id

__all__ = ["Losses", "LOSSES", "one_sector", "VolatileDisk"]

NOTE = struct.Struct("=IIQQQ")
WRITTEN, SYNCED, FAILED = 1, 2, 3
SECTOR = 512

Loss = Callable[[random.Random, int], set[int]]
"""Returns which of the given number of sectors of a write did not reach the disk."""


def everything(_: random.Random, sectors: int) -> set[int]:
    return set(range(sectors))


def half(rng: random.Random, sectors: int) -> set[int]:
    return set(rng.sample(range(sectors), sectors // 2))


def one_sector(rng: random.Random, sectors: int) -> set[int]:
    return {rng.randrange(sectors)}


def nothing(_: random.Random, __: int) -> set[int]:
    return set()


Losses = tuple[Loss, ...]
LOSSES: Losses = (everything, half, one_sector, one_sector, nothing)


@dataclass(frozen=True, slots=True)
class Write:
    """A write that may be undone: its place, the previous bytes, and the previous length of the file."""

    number: int
    inode: int
    at: int
    old: bytes
    before: int


class VolatileDisk:
    """The disk of one bookie, whose files are below `root`."""

    def __init__(self, root: Path, tools: Path) -> None:
        self.root = root
        self.log = tools / "disk.log"
        self._library = tools / "volatile_disk.so"
        source = Path(__file__).with_name("volatile_disk.c")
        command = ["gcc", "-shared", "-fPIC", "-O1", "-o", str(self._library), str(source), "-ldl", "-lpthread"]
        subprocess.run(command, check=True)

    def environment(self, *, fail_sync: str = "", nth: int = 1) -> dict[str, str]:
        """Return the environment of the bookie's process. The `nth` sync of a path that contains `fail_sync` fails."""
        self.log.unlink(missing_ok=True)
        libraries = f"{os.environ.get('LD_PRELOAD', '')} {self._library}".strip()  # a sanitizer's library must be first
        preload = {"LD_PRELOAD": libraries, "VOLATILE_ROOT": str(self.root), "VOLATILE_LOG": str(self.log)}
        return {**preload, "VOLATILE_FAIL": f"{fail_sync}:{nth}"} if fail_sync else preload

    def failed_at(self) -> int | None:
        """Return when the planned sync failed, on the monotonic clock, or None if it has not failed."""
        return next((at for kind, _, at, _ in self._notes() if kind == FAILED), None)

    def cut_power(self, rng: random.Random, losses: Losses = LOSSES) -> int:
        """Undo what was not synced, and return how many writes were affected. The machine counts as restarted too."""
        pending = self._pending()
        paths = {path.stat().st_ino: path for path in self.root.rglob("*") if path.is_file()}
        for write in reversed(pending):
            if write.inode in paths:
                _take_back(paths[write.inode], write, rng, rng.choice(losses))
        self.log.unlink(missing_ok=True)
        for marker in self.root.rglob("DIRTY"):
            marker.write_text(marker.read_text().replace(boot_id(), "an earlier boot"))
        return len(pending)

    def _notes(self) -> list[tuple[int, int, int, Write | None]]:
        """Return (kind, inode, at, write) in order."""
        data = self.log.read_bytes() if self.log.exists() else b""
        notes: list[tuple[int, int, int, Write | None]] = []
        pos = number = 0
        while len(data) - pos >= NOTE.size:
            kind, size, inode, at, before = NOTE.unpack_from(data, pos)
            pos += NOTE.size
            if kind == WRITTEN:
                notes.append((kind, inode, at, Write(number, inode, at, data[pos : pos + size], before)))
                number += 1
                pos += size
            else:
                notes.append((kind, inode, at, None))
        return notes

    def _pending(self) -> list[Write]:
        """Return the writes that no successful sync of their file covers."""
        notes = self._notes()
        covered: dict[int, int] = {}
        for kind, inode, at, _ in notes:
            if kind == SYNCED:
                covered[inode] = max(covered.get(inode, 0), at)
        return [write for *_, write in notes if write is not None and write.number >= covered.get(write.inode, 0)]


def _take_back(path: Path, write: Write, rng: random.Random, loss: Loss) -> None:
    sectors = -(-len(write.old) // SECTOR)
    lost = loss(rng, sectors)
    fd = os.open(path, os.O_RDWR)
    try:
        for sector in lost:
            at = sector * SECTOR
            os.pwrite(fd, write.old[at : at + SECTOR], write.at + at)
        if len(lost) == sectors and write.before < write.at + len(write.old):
            os.ftruncate(fd, write.before)
        os.fsync(fd)
    finally:
        os.close(fd)
