"""What happens to the files of a bookie that is down: bits rot, sectors turn into others, and old copies come back."""

import random
import shutil
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Decay", "rot", "Snapshots"]

SECTOR = 512
HEAD_BYTES = 8192
"""Half of all damage is in the first bytes of a file: headers, and the beginning of what was preallocated."""


@dataclass(frozen=True, slots=True)
class Decay:
    """What happens before a run. `part` is in the path of the file, or the name of the directory.

    `kind` is flip (a bit), zero, noise or swap (a sector), save (a copy of a directory), or back (that copy comes
    back).
    """

    kind: str
    part: str
    seed: int


def rot(root: Path, decay: Decay) -> Path | None:
    """Damage a file below `root`, and return it; None if there is none that is not empty."""
    rng = random.Random(decay.seed)
    paths = [path for path in sorted(root.rglob("*")) if path.is_file() and decay.part in path.name]
    paths = [path for path in paths if path.stat().st_size > 0]
    if not paths:
        return None
    path = rng.choice(paths)
    size = path.stat().st_size
    at = rng.randrange(min(size, HEAD_BYTES) if rng.random() < 0.5 else size)
    with path.open("r+b") as file:
        if decay.kind == "flip":
            file.seek(at)
            byte = file.read(1)[0] ^ 1 << rng.randrange(8)
            data = bytes([byte])
        else:
            at -= at % SECTOR
            count = min(SECTOR, size - at)
            file.seek(rng.randrange(size) // SECTOR * SECTOR)
            data = {"zero": bytes(count), "noise": rng.randbytes(count), "swap": file.read(count)}[decay.kind]
        file.seek(at)
        file.write(data)
    return path


class Snapshots:
    """Copies of directories of the bookie, below `place`."""

    def __init__(self, root: Path, place: Path) -> None:
        self._root = root
        self._place = place

    def save(self, name: str) -> None:
        """Copy a directory; an earlier copy is replaced.

        A directory without marks or journal files is left out: to get it back would be to lose the disk, which cookies
        reveal, and worlds have none.
        """
        shutil.rmtree(self._place / name, ignore_errors=True)
        current = self._root / name / "current"
        if any(current.glob("lastMark*")) or any(current.glob("*.txn")):
            shutil.copytree(self._root / name, self._place / name)

    def bring_back(self, name: str) -> bool:
        """Replace a directory by its copy. Return False if there is none."""
        if not (self._place / name).is_dir():
            return False
        shutil.rmtree(self._root / name, ignore_errors=True)
        shutil.copytree(self._place / name, self._root / name)
        return True
