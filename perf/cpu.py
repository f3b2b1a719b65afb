"""CPU seconds of the processes of a measurement: this process and its descendants, by kind."""

import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

__all__ = ["since_s", "spent_by", "spent_s"]

TICKS = os.sysconf("SC_CLK_TCK")
KINDS = {"pyspark.daemon": "workers", "bookie.local": "bookie", "bookie.server": "bookie", "java": "jvm"}


def processes(parent: int) -> Iterator[int]:
    """Yield a process id and those of all its descendants."""
    yield parent
    for task in Path(f"/proc/{parent}/task").glob("*/children"):
        with suppress(OSError):
            for child in map(int, task.read_text().split()):
                yield from processes(child)


def spent_s() -> dict[str, float]:
    """Return the CPU seconds by kind of process; `here` is this one. Ended descendants are included if they were
    waited for.
    """
    spent: defaultdict[str, float] = defaultdict(float)
    for pid in processes(os.getpid()):
        with suppress(OSError):
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            words = Path(f"/proc/{pid}/cmdline").read_text()
            kind = next((kind for word, kind in KINDS.items() if word in words), "here")
            spent[kind] += sum(map(int, fields[11:15])) / TICKS
    return dict(spent)


def spent_by(pids: Iterable[int]) -> float:
    """Return the CPU seconds that these processes have spent, of which all must run."""
    fields = [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split() for pid in pids]
    return sum(sum(map(int, each[11:13])) for each in fields) / TICKS


def since_s(before: Mapping[str, float]) -> dict[str, float]:
    """Return the CPU seconds spent since `before`."""
    return {kind: max(0.0, now - before.get(kind, 0.0)) for kind, now in spent_s().items()}
