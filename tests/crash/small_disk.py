"""A small file system for a test, in a private mount namespace; it ends with the process that holds it.

The bookie enters the namespace, and the test accesses it through `/proc`. A tmpfs needs user namespaces or root; an
ext4 in a file (`loop`) needs root.
"""

import os
import shutil
import subprocess
from pathlib import Path
from typing import Self

__all__ = ["SmallDisk", "Unavailable"]

MOUNTS = {
    "tmpfs": 'mount -t tmpfs -o "size=$2" none "$1"',
    "ext4": 'truncate -s "$2" "$3" && mkfs.ext4 -q -F -m 0 "$3" && mount -o loop "$3" "$1"',
}
HOLD = "mount --make-rprivate / && {mount} && echo mounted && exec cat"
CHUNK = bytes(1 << 20)


class Unavailable(Exception):
    """This machine does not permit mounting; the text is its error message."""


class SmallDisk:
    """`size` bytes at `directory`, which must exist. Use it as a context manager."""

    def __init__(self, directory: Path, kind: str, size: int) -> None:
        self.directory = directory
        self.kind = kind
        self.size = size
        self._root = ["--map-root-user"] if os.geteuid() else []
        self._holder: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        if self.kind == "ext4" and (self._root or not shutil.which("mkfs.ext4")):
            raise Unavailable("a loop mount needs root, and mkfs.ext4")
        image = self.directory.with_name(f"{self.directory.name}.img")
        script = HOLD.format(mount=MOUNTS[self.kind])
        command = ["unshare", "--mount", *self._root, "sh", "-c", script, "sh", str(self.directory), str(self.size)]
        without = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}  # libtsan crashes shells
        self._holder = subprocess.Popen(
            [*command, str(image)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=without,
        )
        assert self._holder.stdout
        if self._holder.stdout.readline() != b"mounted\n":
            reason = self._holder.communicate()[1].decode(errors="replace").strip()
            raise Unavailable(f"{self.kind} cannot be mounted: {reason}")
        return self

    def __exit__(self, *_: object) -> None:
        assert self._holder
        self._holder.communicate()  # the end of its input ends the namespace

    def enter(self, command: list[str]) -> list[str]:
        """Return the command, wrapped to run where the disk is mounted."""
        assert self._holder
        user = ["--user", "--preserve-credentials"] if self._root else []
        return ["nsenter", "--target", str(self._holder.pid), "--mount", *user, "--", *command]

    @property
    def inside(self) -> Path:
        """Return the disk's directory as a process outside the namespace reaches it."""
        assert self._holder
        return Path(f"/proc/{self._holder.pid}/root{self.directory}")

    def fill(self) -> None:
        """Use up all space."""
        with self._ballast().open("wb", buffering=0) as ballast:
            for chunk in (CHUNK, CHUNK[:4096]):
                try:
                    while True:
                        ballast.write(chunk)
                except OSError:
                    pass

    def free(self) -> None:
        """Release what `fill` used."""
        self._ballast().unlink()

    def _ballast(self) -> Path:
        return self.inside / "ballast"
