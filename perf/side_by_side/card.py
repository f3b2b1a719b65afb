"""What a figure was measured on: without it, it cannot be compared."""

import datetime as dt
import os
import platform
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def cpu_model() -> str:
    """As the kernel names it."""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith(("model name", "CPU part")):
            return line.partition(":")[2].strip()
    return platform.processor() or "unknown"


def disk_of(directory: Path) -> str:
    """Device and file system that hold the directory."""
    mounts = [line.split()[:3] for line in Path("/proc/mounts").read_text().splitlines()]
    holding = [mount for mount in mounts if directory.resolve().is_relative_to(mount[1])]
    device, _, kind = max(holding, key=lambda mount: len(mount[1]))
    return f"{device} {kind}"


def commit() -> str:
    """Short id of the commit, with a mark if files differ from it."""
    words = ["git", "describe", "--always", "--dirty", "--abbrev=10", "--exclude=*"]
    return subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip() or "unknown"


def machine_card(directory: Path) -> dict[str, str | int]:
    """The machine, the day and the commit; `directory` is where the data lies."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return {
        "date": dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
        "commit": commit(),
        "cpu": cpu_model(),
        "cores": os.cpu_count() or 0,
        "memory_mib": memory >> 20,
        "kernel": platform.release(),
        "disk": disk_of(directory),
        "python": platform.python_version(),
    }
