"""`python -m perf.scale.table`: the tables of docs/scale.md, of the newest line for each shape."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from perf.markdown import head, line
from perf.scale.shapes import KINDS, SHAPES

__all__ = ["ceilings", "LARGE", "Machine", "newest", "tables"]

Row = Mapping[str, Any]
SHAPE = ("work", "cpus", "loops", "journals", "directories")
RECORD_BYTES = 4 + 36 + 1024
"""Of an entry with 1 KiB of user data in a journal, an entry log and a batch."""
ADD_BYTES = 36 + RECORD_BYTES
"""The same as a request to add it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """A machine and how a bookie uses it: rates in bytes per second, of a disk for large sequential writes."""

    cores: int
    loops: int
    journals: int
    directories: int
    disk_s: float
    network_s: float


LARGE = Machine(cores=64, loops=16, journals=2, directories=10, disk_s=2e9, network_s=2 * 25e9 / 8)


def newest(lines: Iterable[str]) -> list[Row]:
    """Return the last row of each shape, in the order of the shapes."""
    rows = {tuple(row[name] for name in SHAPE): row for row in map(json.loads, lines)}
    return [rows[key] for shape in SHAPES if (key := tuple(shape.row().values())) in rows]


def ceilings(row: Row, machine: Machine) -> list[tuple[str, float]]:
    """Return what each resource of a machine allows in entries per second, least first, if an entry takes as much CPU
    time there as in `row`.
    """
    micros: dict[str, float] = {kind: row["cpu_us"].get(kind, 0.0) for kind in KINDS}

    def threads(many: int, kind: str) -> float:
        return 1e6 * many / micros[kind]

    found = [
        ("all cores", 1e6 * machine.cores / sum(micros.values())),
        (f"{machine.loops} I/O loops, a core each", threads(machine.loops, "io")),
    ]
    if row["work"] == "adds":
        found += [
            ("network, in", machine.network_s / ADD_BYTES),
            (f"disks of {machine.journals} journals", machine.journals * machine.disk_s / RECORD_BYTES),
            (f"disks of {machine.directories} directories", machine.directories * machine.disk_s / RECORD_BYTES),
            (f"{machine.journals} journal threads, a core each", threads(machine.journals, "journal")),
            (f"{machine.directories} flushers, a core each", threads(machine.directories, "flush")),
        ]
    else:
        found.append(("network, out", machine.network_s / RECORD_BYTES))
    return sorted(found, key=lambda one: one[1])


def tables(rows: Sequence[Row]) -> list[str]:
    """Return the table of what was measured, and one of the ceilings for each kind of work, in Markdown."""
    columns = ("work", "CPUs", "loops", "journals", "directories", "entries/s", "p99 ms")
    lines = head([*columns, *(f"{kind} µs" for kind in KINDS)])
    for row in rows:
        figures = [f"{row['entries_s']:,}", f"{row['p99_us'] / 1000:.1f}"]
        micros = [f"{row['cpu_us'].get(kind, 0):.2f}" for kind in KINDS]
        lines.append(line([*(str(row[name]) for name in SHAPE), *figures, *micros]))
    for work in ("adds", "batches"):
        lines += ["", *head([f"{work}: what allows", "million entries/s"])]
        for name, most in ceilings(_base(rows, work), LARGE):
            lines.append(line([name, f"{most / 1e6:.1f}"]))
    return lines


def _base(rows: Sequence[Row], work: str) -> Row:
    """Return the row of two CPUs and two loops, and one of everything else."""
    [found] = [row for row in rows if [row[name] for name in SHAPE] == [work, 2, 2, 1, 1]]
    return found


if __name__ == "__main__":
    from perf.scale.__main__ import ROWS

    print("\n".join(tables(newest(ROWS.read_text().splitlines()))))
