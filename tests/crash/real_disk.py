"""A real file system on a loop device, whose power can be cut: what the kernel has not written to the device is lost.

The image of the device lies in memory. A power cut copies the image while the file system is still mounted, so that
the copy has what was written and flushed so far, and goes on with the copy, as after a restart of the machine. It
needs root, and runs in a mount namespace of its own, which ends with the process.
"""

import ctypes
import os
import random
import shutil
import subprocess
import tempfile
from pathlib import Path

from bookie.server.disks.dirty import boot_id
from tests.crash.small_disk import Unavailable

__all__ = ["RealDisk"]

CLONE_NEWNS = 0x20000
IMAGE_BYTES = {"ext4": 256 << 20, "xfs": 320 << 20}
MAKE = {"ext4": ["mkfs.ext4", "-q", "-F", "-m", "0"], "xfs": ["mkfs.xfs", "-q", "-f"]}
MEMORY = Path("/dev/shm")  # noqa: S108
COPIES_MAX = 20


class RealDisk:
    """The disk of one bookie, mounted at `root`, with the methods of `power_cut.VolatileDisk` that a scenario uses."""

    def __init__(self, root: Path, kind: str) -> None:
        """Make the file system and mount it. Raises Unavailable where this machine does not permit that."""
        if os.geteuid() != 0 or not shutil.which(MAKE[kind][0]):
            raise Unavailable(f"a power cut on {kind} needs root and {MAKE[kind][0]}")
        self.root = root
        self._kind = kind
        self._images = Path(tempfile.mkdtemp(prefix="bookie-images-", dir=MEMORY))
        self._image = self._images / "0"
        self._number = 0
        with self._image.open("wb") as file:
            file.truncate(IMAGE_BYTES[kind])
        _run(*MAKE[kind], str(self._image))
        root.mkdir(parents=True, exist_ok=True)
        self._mount()

    @staticmethod
    def private_mounts() -> None:
        """Let this process, and those that it starts, have mounts of their own. Call it before threads are started."""
        if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNS) != 0:
            raise Unavailable(f"no mount namespace: {os.strerror(ctypes.get_errno())}")
        _run("mount", "--make-rprivate", "/")

    def environment(self) -> dict[str, str]:
        """Return the environment of the bookie's process, which needs nothing."""
        return {}

    def cut_power(self, rng: random.Random, losses: object = ()) -> int:
        """Go on with what the device has, and return how many bytes had not been written to it.

        The machine counts as restarted. Whoever used the disk must be dead.
        """
        del rng, losses
        self._number += 1
        copy = self._images / str(self._number)
        _copy(self._image, copy)
        _run("umount", str(self.root))
        changed = subprocess.run(
            ["cmp", "-l", str(self._image), str(copy)], stdout=subprocess.PIPE, check=False
        ).stdout.count(b"\n")
        self._image.unlink()
        self._image = copy
        self._mount()
        for marker in self.root.rglob("DIRTY"):
            marker.write_text(marker.read_text().replace(boot_id(), "an earlier boot"))
        return changed

    def end(self) -> None:
        """Unmount the disk and remove the image."""
        subprocess.run(["umount", str(self.root)], check=False)
        shutil.rmtree(self._images, ignore_errors=True)

    def _mount(self) -> None:
        options = "loop,nouuid" if self._kind == "xfs" else "loop"
        _run("mount", "-o", options, str(self._image), str(self.root))


def _copy(image: Path, copy: Path) -> None:
    """Copy the image as of one moment: no write to the device may fall between two equal copies."""
    for _ in range(COPIES_MAX):
        _run("cp", "--sparse=always", str(image), str(copy))
        if subprocess.run(["cmp", "-s", str(image), str(copy)], check=False).returncode == 0:
            return
    raise Unavailable(f"{image} was written to all the time, so that no copy of one moment could be made")


def _run(*words: str) -> None:
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Unavailable(f"{' '.join(words)}: {done.stderr.strip()}")
