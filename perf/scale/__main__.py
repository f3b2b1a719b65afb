"""`python -m perf.scale`: where a bookie's CPU time goes, by kind of thread, with more CPUs, loops, journals and
directories. Appends a JSON line for each shape to perf/results/scale.jsonl; `perf.scale.table` makes a model of it.

`python -m perf.scale --latency MS --rate MB_S`: what more journals and directories gain if each has a disk of its own.
The disks are made of memory and waiting (`perf.scale.disks`). Measures each shape three times, in turn. With
`--rate 0`, the disks have no limit but their latency, and each shape is measured with two numbers of outstanding adds.
"""

import json
import os
import shutil
import time
from collections import defaultdict
from functools import partial
from pathlib import Path

import click

from perf.scale.disks import Disks
from perf.scale.shapes import OF_LATENCY, ON_OWN_DISKS, SHAPES, Shape, kind_of
from perf.side_by_side.card import append, machine_card
from perf.side_by_side.drive import CLIENT_CPU, Result, bkload, place
from perf.side_by_side.servers import OurBookie
from perf.side_by_side.sessions import fresh

ROOT = Path(__file__).resolve().parents[2]
ROWS = ROOT / "perf/results/scale.jsonl"
SIZE = 1024
CONNECTIONS = 4
OUTSTANDING, OUTSTANDING_ON_OWN_DISKS = 1000, 20_000
OUTSTANDING_MORE = 80_000
MEMORY = Path("/dev/shm/perf-scale")  # noqa: S108  (no secrets, and the name is given in the help)
"""Where slow disks are, so that they do not wait for the real one."""
CACHE_MIB_OF_EACH = 128
SMALL = {"flushSizeMb": "16", "journalMaxSizeMB": "16", "journalPreAllocSizeMB": "16", "journalMaxBackups": "0"}
"""With these, write caches on slow disks are full when the measurement begins, and journals write over used files."""
WARM_UP_OF_SLOW = 2.0
"""Times the measured time."""
LEDGERS = 40
CACHED = 50_000
"""Entries of each ledger that is read."""
LATER = 10_000_000
"""The first entry of the measured adds, after those that warmed up."""
TICKS_S = os.sysconf("SC_CLK_TCK")


def spent_s(pid: int) -> dict[str, float]:
    """Return the CPU seconds of a bookie's threads so far, by kind."""
    spent: defaultdict[str, float] = defaultdict(float)
    for task in Path(f"/proc/{pid}/task").iterdir():
        name, _, fields = (task / "stat").read_text().partition("(")[2].rpartition(")")
        spent[kind_of(name)] += sum(map(int, fields.split()[11:13])) / TICKS_S
    return spent


def settings(directory: Path, shape: Shape) -> dict[str, str]:
    """Return the configuration of a shape. An index is on the disk of its ledger directory."""
    places = {
        "journalDirectories": [f"{directory}/journal{at}" for at in range(shape.journals)],
        "ledgerDirectories": [f"{directory}/ledgers{at}" for at in range(shape.directories)],
        "indexDirectories": [f"{directory}/index{at}" for at in range(shape.directories)],
    }
    for path in (path for paths in places.values() for path in paths):
        Path(path).mkdir(parents=True)
    return {"serverNumIOThreads": str(shape.loops), **{key: ",".join(paths) for key, paths in places.items()}}


def load(shape: Shape, server: OurBookie, seconds: float, disks: Disks | None, outstanding: int) -> Result:
    """Apply the load of a shape; return its figures, with the CPU time of each kind of thread per entry."""
    run = partial(bkload, port=server.port, size=SIZE, connections=CONNECTIONS)
    if shape.work == "adds":
        run = partial(run, "add", outstanding=outstanding, ledgers=LEDGERS)
    else:
        run("fill", outstanding=1000, ledgers=CONNECTIONS, entries=CACHED)
        run = partial(run, "batch", outstanding=CONNECTIONS, ledgers=CONNECTIONS, entries=CACHED)
    run(seconds=WARM_UP_OF_SLOW * seconds if disks else seconds / 2)
    before, begun = spent_s(server.pid), time.monotonic()
    written = disks.written(server) if disks else []
    found = run(seconds=seconds, **({"first_entry": LATER} if shape.work == "adds" else {}))
    taken = time.monotonic() - begun
    entries = found["entries_s"] * taken
    micros = {kind: round(1e6 * (s - before.get(kind, 0.0)) / entries, 3) for kind, s in spent_s(server.pid).items()}
    figures = {"entries_s": round(found["entries_s"]), "p99_us": found["latency_us"]["p99"], "cpu_us": micros}
    if disks:
        rates = [(now - then) / taken / 1e6 for then, now in zip(written, disks.written(server), strict=True)]
        figures["journals_mb_s"] = round(sum(rates[: shape.journals]), 1)
        figures["directories_mb_s"] = round(sum(rates[shape.journals :]), 1)
    return figures


def measure(directory: Path, shape: Shape, seconds: float, disks: Disks | None, outstanding: int) -> Result:
    """Measure one shape with a bookie of its own."""
    server = OurBookie(fresh(directory))
    keys = settings(directory, shape)
    if disks:
        disks.attach(server, keys)
        keys |= {**SMALL, "dbStorage_writeCacheMaxSizeMb": str(CACHE_MIB_OF_EACH * shape.directories)}
    server.start(keys)
    try:
        if shape.cpus == 1:
            place(server.pid, {0 if CLIENT_CPU else 1})
        return load(shape, server, seconds, disks, outstanding)
    finally:
        server.stop()
        shutil.rmtree(directory, ignore_errors=True)


def plan(disks: Disks | None, runs: int) -> list[tuple[Shape, int]]:
    """Return what is measured: shapes, and the adds that are outstanding."""
    if disks is None:
        return [(shape, OUTSTANDING) for shape in SHAPES]
    if disks.mb_s:
        return [(shape, OUTSTANDING_ON_OWN_DISKS) for shape in ON_OWN_DISKS] * runs
    return [(shape, many) for shape in OF_LATENCY for many in (OUTSTANDING_ON_OWN_DISKS, OUTSTANDING_MORE)] * runs


@click.command(help=__doc__)
@click.option("--directory", type=click.Path(path_type=Path), help="Where the data is; of slow disks, in memory.")
@click.option("--seconds", default=6.0, show_default=True, help="Measured time of each shape.")
@click.option("--latency", type=float, help="Milliseconds of a write or a sync. Gives each directory its own disk.")
@click.option("--rate", default=50, show_default=True, help="MB/s of each such disk; 0: no limit.")
@click.option("--runs", type=int, default=3, show_default=True, help="Measurements of each shape on own disks.")
@click.option("--rows", type=click.Path(path_type=Path), default=ROWS, show_default=True, help="Where lines go.")
def main(directory: Path | None, seconds: float, latency: float | None, rate: int, runs: int, rows: Path) -> None:
    disks = None if latency is None else Disks(latency, rate)
    directory = directory or (MEMORY if disks else ROOT / "build/perf/scale")
    directory.mkdir(parents=True, exist_ok=True)
    card = machine_card(directory)
    for shape, outstanding in plan(disks, runs):
        found = measure(directory / "server", shape, seconds, disks, outstanding)
        on = {**disks.row(), "outstanding": outstanding} if disks else {}
        row = {**shape.row(), **on, **found, "card": card}
        print(json.dumps(row), flush=True)
        append(rows, row)


if __name__ == "__main__":
    main()
