"""`python -m perf.scale`: where a bookie's CPU time goes, by kind of thread, with more CPUs, loops, journals and
directories. Appends a JSON line for each shape to perf/results/scale.jsonl; `perf.scale.table` makes a model of it.
"""

import json
import os
import shutil
import time
from collections import defaultdict
from functools import partial
from pathlib import Path

import click

from perf.scale.shapes import SHAPES, Shape, kind_of
from perf.side_by_side.card import machine_card
from perf.side_by_side.drive import CLIENT_CPU, Result, bkload, place
from perf.side_by_side.servers import OurBookie
from perf.side_by_side.sessions import fresh

ROOT = Path(__file__).resolve().parents[2]
ROWS = ROOT / "perf/results/scale.jsonl"
SIZE = 1024
CONNECTIONS = 4
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
    """Return the configuration of a shape. All directories are on one disk."""
    places = {
        "journalDirectories": [f"{directory}/journal{at}" for at in range(shape.journals)],
        "ledgerDirectories": [f"{directory}/ledgers{at}" for at in range(shape.directories)],
        "indexDirectories": [f"{directory}/index{at}" for at in range(shape.directories)],
    }
    for path in (path for paths in places.values() for path in paths):
        Path(path).mkdir(parents=True)
    return {"serverNumIOThreads": str(shape.loops), **{key: ",".join(paths) for key, paths in places.items()}}


def load(shape: Shape, server: OurBookie, seconds: float) -> Result:
    """Apply the load of a shape; return its figures, with the CPU time of each kind of thread per entry."""
    run = partial(bkload, port=server.port, size=SIZE, connections=CONNECTIONS)
    if shape.work == "adds":
        run = partial(run, "add", outstanding=1000, ledgers=LEDGERS)
    else:
        run("fill", outstanding=1000, ledgers=CONNECTIONS, entries=CACHED)
        run = partial(run, "batch", outstanding=CONNECTIONS, ledgers=CONNECTIONS, entries=CACHED)
    run(seconds=seconds / 2)
    before, begun = spent_s(server.pid), time.monotonic()
    found = run(seconds=seconds, **({"first_entry": LATER} if shape.work == "adds" else {}))
    entries = found["entries_s"] * (time.monotonic() - begun)
    micros = {kind: round(1e6 * (s - before.get(kind, 0.0)) / entries, 3) for kind, s in spent_s(server.pid).items()}
    return {"entries_s": round(found["entries_s"]), "p99_us": found["latency_us"]["p99"], "cpu_us": micros}


def measure(directory: Path, shape: Shape, seconds: float) -> Result:
    """Measure one shape with a bookie of its own."""
    server = OurBookie(fresh(directory))
    server.start(settings(directory, shape))
    try:
        if shape.cpus == 1:
            place(server.pid, {0 if CLIENT_CPU else 1})
        return load(shape, server, seconds)
    finally:
        server.stop()
        shutil.rmtree(directory, ignore_errors=True)


@click.command()
@click.option("--directory", type=click.Path(path_type=Path), default=ROOT / "build/perf/scale", show_default=True)
@click.option("--seconds", default=6.0, show_default=True, help="Measured time of each shape.")
@click.option("--rows", type=click.Path(path_type=Path), default=ROWS, show_default=True, help="Where lines go.")
def main(directory: Path, seconds: float, rows: Path) -> None:
    """Measure all shapes."""
    for shape in SHAPES:
        found = measure(directory / "server", shape, seconds)
        line = json.dumps({**shape.row(), **found, "card": machine_card(directory)})
        print(line, flush=True)
        with rows.open("a") as file:
            file.write(line + "\n")


if __name__ == "__main__":
    main()
