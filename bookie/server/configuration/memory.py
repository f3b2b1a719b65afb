"""The memory that this process may use: that of the machine, or less by its control groups. Reads /proc and /sys."""

import os
from collections.abc import Iterator
from pathlib import Path

__all__ = ["allowed_bytes"]

UNLIMITED = 1 << 60


def allowed_bytes(root: Path = Path("/")) -> int:
    """Return the physical memory, or the tightest limit of the control groups of this process. `root` is for tests."""
    physical = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return min([physical, *_cgroup_limits(root)])


def _cgroup_limits(root: Path) -> Iterator[int]:
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, group = line.split(":", 2)
        if not controllers:
            yield from _limits_up(root / "sys/fs/cgroup", group, "memory.max")
        elif "memory" in controllers.split(","):
            yield from _limits_up(root / "sys/fs/cgroup/memory", group, "memory.limit_in_bytes")


def _limits_up(mount: Path, group: str, name: str) -> Iterator[int]:
    """Yield the limits of `group` and those above it; inside a container only the mount's own may be visible."""
    leaf = mount / group.strip("/")
    for directory in (leaf, *leaf.parents):
        if not directory.is_relative_to(mount):
            return
        try:
            text = (directory / name).read_text().strip()
        except OSError:
            continue
        if text.isdigit() and int(text) < UNLIMITED:
            yield int(text)
