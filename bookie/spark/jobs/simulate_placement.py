"""`bkpipe simulate-placement`: compares how a cluster fills up under placement policies and weights.

A run is one process of numpy and the client's policy, for some seconds. On one machine, local processes start in a
tenth of the time of Spark and need no Java, so Spark is used only if --master names it, with one task per run.
"""

import csv
import io
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from bookie.durable import write_file
from bookie.spark.job import Job, with_job
from bookie.spark.job_options import target_option
from bookie.spark.plots import line_plot, page
from bookie.spark.runs import Runs, with_runs
from bookie.spark.simulation.options import scenarios, with_scenarios

PLOTS = {
    "Fullest and emptiest bookie": (("filled_max", "filled_min"), "used share of the disk"),
    "Spread of fill": (("spread",), "standard deviation of the used shares"),
    "Hottest bookie": (("hottest",), "its bytes relative to the mean of all writable bookies"),
    "Empty bookies that joined": (("joined_over_old",), "bytes to each of them relative to each old bookie"),
    "Full bookies": (("full",), "read-only bookies"),
}


@click.command()
@with_scenarios
@target_option("Directory to write course.csv, SVG plots and report.html to.")
@with_runs
@with_job
def command(job: Job, runs: Runs, **given: Any) -> int:
    """Simulate how a cluster fills up under placement policies, and where load concentrates.

    Ledgers are placed by the client's own policies and weights, thousands at a time; cluster, load and time are
    modelled. Runs with the same seed use the same ledgers, and give the same figures on any machine.

    There is a row for each run: when the first bookie was full, and how full the cluster was then; when a ledger found
    too few bookies; how unevenly disks are filled; the load of the hottest bookie relative to the mean, in fiftieths
    of the run; and how much more data empty bookies that joined receive than old ones.

    \b
    EXAMPLES
      bkpipe simulate-placement --add 50@0.5 --to build/placement
      bkpipe simulate-placement --weights median:3 --weights min:3 --poll 1d --seeds 5
      bkpipe simulate-placement --bookies 5000 --ledgers 50000000 --master spark://host:7077
    """
    from bookie.spark.simulation.cluster import simulate  # noqa: PLC0415

    runs_asked = {one.name: one for one in scenarios(given)}
    options = {name: one for name, one in given.items() if name != "target"}
    with job.open(**options) as state:
        if job.dry_run:
            planned = [{"scenario": name, "done": name in state.done} for name in runs_asked]
            return job.end(planned, called="runs")
        outcomes = runs.outcomes(job, state, "scenario", simulate, runs_asked)
    rows = [{key: value for key, value in one.items() if key != "course"} for one in outcomes]
    if given["target"]:
        _write(given["target"], outcomes, rows)
    first = next(iter(runs_asked.values()))
    return job.end(rows, called="runs", load=asdict(first.load), to=given["target"])


def _write(target: Path, outcomes: Sequence[dict[str, Any]], rows: Sequence[dict[str, Any]]) -> None:
    table = io.StringIO()
    lines = [{"scenario": one["scenario"], **row} for one in outcomes for row in one["course"]]
    writer = csv.DictWriter(table, list(lines[0]) if lines else ["scenario"])
    writer.writeheader()
    writer.writerows(lines)
    write_file(target / "course.csv", table.getvalue().encode())
    plots = {}
    for title, (columns, label) in PLOTS.items():
        curves = {}
        for one in outcomes:
            for column in columns:
                name = one["scenario"] if len(columns) == 1 else f"{one['scenario']}, {column.split('_')[1]}"
                curves[name] = [(row["day"], row[column]) for row in one["course"]]
        plots[title] = line_plot(curves, "days", label)
        write_file(target / f"{title.lower().replace(' ', '-')}.svg", plots[title].encode())
    write_file(target / "report.html", page("Placement, simulated", plots, rows).encode())
