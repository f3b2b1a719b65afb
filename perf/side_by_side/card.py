"""The machine, day and commit of a measurement, without which figures cannot be compared."""

import datetime as dt
import json
import os
import platform
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


def cpu_model() -> str:
    """Return the CPU's name as reported by the kernel."""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith(("model name", "CPU part")):
            return line.partition(":")[2].strip()
    return platform.processor() or "unknown"


def disk_of(directory: Path) -> str:
    """Return the device and file system of a directory."""
    mounts = [line.split()[:3] for line in Path("/proc/mounts").read_text().splitlines()]
    holding = [mount for mount in mounts if directory.resolve().is_relative_to(mount[1])]
    device, _, kind = max(holding, key=lambda mount: len(mount[1]))
    return f"{device} {kind}"


def commit() -> str:
    """Return the short id of the commit, with a mark if files differ from it."""
    words = ["git", "describe", "--always", "--dirty", "--abbrev=10", "--exclude=*"]
    return subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip() or "unknown"


def machine_card(directory: Path) -> dict[str, str | int]:
    """Return the machine, the day and the commit; `directory` is where the data lies."""
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


def append(results: Path, row: Mapping[str, Any]) -> None:
    """Append a row, with its card, to a file of results. It is in the file even if a later measurement fails."""
    results.parent.mkdir(parents=True, exist_ok=True)
    with results.open("a") as file:
        file.write(json.dumps(row) + "\n")


def newest_run(lines: Iterable[str]) -> list[Mapping[str, Any]]:
    """Return the rows of a file of results that have the date of the last one: those of one run."""
    rows: list[Mapping[str, Any]] = [json.loads(one) for one in lines]
    return [row for row in rows if row["card"]["date"] == rows[-1]["card"]["date"]]
