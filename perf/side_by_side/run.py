"""`python -m perf.side_by_side.run`: our bookie and Apache BookKeeper's in turn, on one disk, under the same loads."""

import dataclasses
import importlib
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import click
from rich.console import Console

from perf.load.build import build_all
from perf.side_by_side import sessions
from perf.side_by_side.card import ROOT, append, machine_card
from perf.side_by_side.drive import Result
from perf.side_by_side.report import Samples, print_table
from perf.side_by_side.rows import ROWS, Row, Subject
from perf.side_by_side.servers import OurBookie, Server
from perf.side_by_side.sessions import MakeServer, Plan

SUBJECTS: tuple[Subject, ...] = ("java", "ours", "busy", "bound", "syncs")
DATA = ROOT / "build/perf/data"
RESULTS = ROOT / "perf/results/side_by_side.jsonl"
DISK_MB_S = 2500  # what a fast server writes at most while adds run, journal and entry log together
GIB = 1 << 30
Measured = Iterator[tuple[Subject, str, Result]]


def java_bookie(directory: Path) -> Server:
    """Return Apache BookKeeper's bookie; it is imported on demand, because measuring ours alone needs no Java."""
    server: Server = importlib.import_module("perf.side_by_side.java_bookie").JavaServer(directory)
    return server


def busy_bookie(directory: Path) -> Server:
    """Return our bookie with two Python threads that never rest."""
    return OurBookie(directory, {"BOOKIE_SPIN_THREADS": "2"})


MAKERS: dict[Subject, MakeServer] = {"java": java_bookie, "ours": OurBookie, "busy": busy_bookie}


def measure_pair(pair: int, rows: list[Row], subjects: tuple[Subject, ...], plan: Plan) -> Measured:
    """Measure every subject once; the order of the two servers alternates from pair to pair."""
    order: list[Subject] = ["java", "ours"] if pair % 2 == 0 else ["ours", "java"]
    for subject in (*order, *SUBJECTS[2:]):
        if subject not in subjects:
            continue
        if subject == "bound":
            yield from (("bound", name, result) for name, result in sessions.bounds(rows, plan))
            continue
        if subject == "syncs":
            involved = [row for row in rows if row.involves("syncs")]
            yield from (("syncs", name, result) for name, result in sessions.syncs(involved, plan))
            continue
        chosen = [row for row in rows if (row.involves("busy") if subject == "busy" else row.java or subject == "ours")]
        make = MAKERS[subject]
        for name, result in sessions.adds(make, [row for row in chosen if row.kind == "add"], plan):
            yield subject, name, result
        reading = [row for row in chosen if row.kind != "add"]
        for name, result in sessions.reads(make, reading, plan) if reading else ():
            if not name.startswith("bound: "):
                yield subject, name, result
            elif subject == "ours" and "bound" in subjects:
                yield "bound", name.removeprefix("bound: "), result


def rows_of(only: str) -> list[Row]:
    """Return the rows whose names match, and those that they are compared with."""
    names = {row.name for row in ROWS if re.search(only, row.name)}
    names |= {target.row for row in ROWS if row.name in names for target in row.targets}
    return [row for row in ROWS if row.name in names]


def need_space(directory: Path, plan: Plan) -> None:
    """Refuse to start what would fill the disk.

    Raises:
        ClickException: there is too little space.
    """
    need = int(DISK_MB_S * 1e6 * (plan.seconds + plan.warmup)) + 8 * GIB
    free = shutil.disk_usage(directory).free
    if free < need:
        raise click.ClickException(
            f"--directory {directory}: {free // GIB} GiB free, {need // GIB} GiB may be needed; "
            "free some, choose another disk, or lower --seconds"
        )


def keep(samples: list[Samples], plan: Plan, results: Path) -> None:
    """Append one JSON line per row."""
    card = machine_card(plan.directory)
    if any("java" in sample.results for sample in samples):
        card["peer"] = "Apache BookKeeper " + importlib.import_module("tests.fixtures.java_peer").VERSION
    amounts = {key: value for key, value in dataclasses.asdict(plan).items() if key != "directory"}
    for sample in samples:
        append(results, sample.line(card, amounts))


def say(console: Console, pair: int, subject: str, name: str, result: Result) -> None:
    """Print a line of progress."""
    shown = {key: result[key] for key in ("entries_s", "seconds", "rss_mb", "bytes_per_entry") if key in result}
    p99 = result.get("latency_us", {}).get("p99", "-")
    cpu = result.get("server", {}).get("cpu_s_per_million", "-")
    console.print(f"pair {pair} {subject:5} {name:45} {shown} p99 us {p99} CPU-s/M {cpu}", highlight=False)


@click.command(help=__doc__)
@click.option("--pairs", default=3, show_default=True, help="How often each server is measured.")
@click.option("--seconds", default=12.0, show_default=True, help="Measured time of an add row; reads take half.")
@click.option("--warmup", default=8.0, show_default=True, help="Load before the measured time.")
@click.option("--cold-entries", default=1_000_000, show_default=True, help="Entries that each cold row reads.")
@click.option("--only", default="", help="Rows whose name matches this, and those that they are compared with.")
@click.option("--subjects", default=",".join(SUBJECTS), show_default=True, help="Whom to measure.")
@click.option("--directory", default=DATA, type=click.Path(path_type=Path), help="Where the data lies while it runs.")
@click.option("--results", default=RESULTS, type=click.Path(path_type=Path), help="Where the rows are appended.")
def main(pairs: int, only: str, subjects: str, directory: Path, results: Path, **amounts: float) -> None:
    """Measure, append the rows to the results, and print the table."""
    directory.mkdir(parents=True, exist_ok=True)
    plan = Plan(directory=directory, seconds=amounts["seconds"], warmup=amounts["warmup"],
                cold_entries=int(amounts["cold_entries"]))  # fmt: skip
    need_space(directory, plan)
    build_all()
    rows = rows_of(only)
    chosen = tuple(subject for subject in SUBJECTS if subject in subjects.split(","))
    samples: dict[str, Samples] = {}
    samples.update({row.name: Samples(row, others=samples) for row in rows})
    console = Console(width=150)
    try:
        for pair in range(pairs):
            for subject, name, result in measure_pair(pair, rows, chosen, plan):
                say(console, pair, subject, name, result)
                if name in samples:
                    samples[name].results.setdefault(subject, []).append(result)
    finally:  # what was measured before a failure is kept
        keep([sample for sample in samples.values() if sample.results], plan, results)
        print_table(list(samples.values()), console)
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    main()
