"""`python -m perf.scale.table`: the tables of docs/scale.md, of the newest line for each shape, and of the newest runs
with disks of their own.
"""

import json
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from perf.markdown import head, line
from perf.scale.shapes import KINDS, OF_LATENCY, ON_OWN_DISKS, SHAPES

__all__ = [
    "ceilings",
    "LARGE",
    "Machine",
    "newest",
    "newest_of_latency",
    "newest_on_own_disks",
    "of_latency",
    "of_own_disks",
    "tables",
]

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
    """Return the last row of each shape on one disk, in the order of the shapes."""
    found = (row for row in map(json.loads, lines) if "latency_ms" not in row)
    rows = {tuple(row[name] for name in SHAPE): row for row in found}
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


def newest_on_own_disks(lines: Iterable[str]) -> list[Row]:
    """Return the rows of the last run in which each directory had a disk of its own, with a rate."""
    return _last_run(row for row in map(json.loads, lines) if row.get("disk_mb_s"))


def newest_of_latency(lines: Iterable[str]) -> list[Row]:
    """Return the rows of the last run on disks of their own that had no limit but their latency."""
    return _last_run(row for row in map(json.loads, lines) if row.get("disk_mb_s") == 0)


def _last_run(found: Iterable[Row]) -> list[Row]:
    rows = list(found)
    return [row for row in rows if row["card"]["date"] == rows[-1]["card"]["date"]]


def of_own_disks(rows: Sequence[Row]) -> list[str]:
    """Return the table of a run with own disks, medians for each shape, in Markdown. The last columns are the shares of
    the disks' rate that were written.
    """
    columns = ("journals", "directories", "entries/s", "of one of each", "journals' disks", "directories' disks")
    lines = head(columns)
    base = _medians(rows, "entries_s", 1, 1)
    for shape in ON_OWN_DISKS:
        many = {"journals": shape.journals, "directories": shape.directories}
        entries = _medians(rows, "entries_s", **many)
        shares = [_medians(rows, f"{name}_mb_s", **many) / rows[0]["disk_mb_s"] / count for name, count in many.items()]
        figures = [f"{entries:,.0f}", f"{entries / base:.1f}", *(f"{100 * share:.0f} %" for share in shares)]
        lines.append(line([*map(str, many.values()), *figures]))
    return lines


def of_latency(rows: Sequence[Row]) -> list[str]:
    """Return the table of a run on disks with a latency alone: medians of each shape and number of outstanding adds."""
    lines = head(["journals", "directories", "outstanding", "entries/s", "of one of each"])
    for outstanding in dict.fromkeys(row["outstanding"] for row in rows):
        same = [row for row in rows if row["outstanding"] == outstanding]
        base = _medians(same, "entries_s", 1, 1)
        for shape in OF_LATENCY:
            entries = _medians(same, "entries_s", shape.journals, shape.directories)
            figures = [f"{outstanding:,}", f"{entries:,.0f}", f"{entries / base:.1f}"]
            lines.append(line([str(shape.journals), str(shape.directories), *figures]))
    return lines


def _medians(rows: Sequence[Row], name: str, journals: int, directories: int) -> float:
    of = [row for row in rows if (row["journals"], row["directories"]) == (journals, directories)]
    return float(statistics.median(row[name] for row in of))


def _base(rows: Sequence[Row], work: str) -> Row:
    """Return the row of two CPUs and two loops, and one of everything else."""
    [found] = [row for row in rows if [row[name] for name in SHAPE] == [work, 2, 2, 1, 1]]
    return found


if __name__ == "__main__":
    from perf.scale.__main__ import ROWS

    written = ROWS.read_text().splitlines()
    own, latency = of_own_disks(newest_on_own_disks(written)), of_latency(newest_of_latency(written))
    print("\n".join([*tables(newest(written)), "", *own, "", *latency]))
