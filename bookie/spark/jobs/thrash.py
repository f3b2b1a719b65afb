"""`bkpipe thrash`: computes from access logs how often disks read an entry before it is served, by cache size and
readahead.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bookie.durable import write_file
from bookie.errors import IncorrectParameter
from bookie.spark.job import Job, with_job
from bookie.spark.job_options import target_option
from bookie.spark.plots import line_plot, page
from bookie.spark.runs import Runs, with_runs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bookie.spark.reread.replay import Replay

MIB = 1 << 20


@click.command()
@click.argument("logs", nargs=-1, required=True, type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "--cache", default="64,128,256,512,1024", show_default=True, metavar="MIB,...", help="Read cache sizes to compare."
)
@click.option(
    "--readahead",
    default="1000",
    show_default=True,
    metavar="N,...",
    help="Numbers of entries to read ahead, to compare.",
)
@click.option("--readahead-bytes", type=click.IntRange(0), default=4 * MIB, show_default=True,
              help="Most bytes to read ahead.")  # fmt: skip
@click.option("--segment", type=click.IntRange(1), default=64, show_default=True,
              help="Size of a segment of the read cache, in MiB.")  # fmt: skip
@click.option("--adaptive", is_flag=True, help="Also compare adaptive readahead.")
@click.option("--directories", type=click.IntRange(1), default=1, show_default=True,
              help="Number of ledger directories.")  # fmt: skip
@click.option(
    "--by",
    type=click.Choice(("ledger", "client")),
    help="List the ledgers or clients with the most disk reads, for the smallest cache.",
)
@target_option("Directory to write thrash.svg and report.html to.")
@with_runs
@with_job
def command(job: Job, runs: Runs, logs: tuple[Path, ...], **given: Any) -> int:
    """Compute disk reads per entry served, by cache size and readahead, from access logs.

    LOGS are access logs of bookies (accessLogFile, with accessLogSampleRate=1); their rotated files (.1, .2) are found
    too. Every read that missed the write cache is replayed in order against a model of the bookie's read cache and
    readahead. About 1 is what a sufficiently large cache achieves; above 2 it is too small. A sampled log shows fewer
    readers than there are, so its results are a lower bound.

    \b
    EXAMPLES
      bkpipe thrash /var/log/bookie/access.csv --cache 64,256,1024 --readahead 100,1000 --to build/thrash
      bkpipe thrash access.csv --cache 256 --by client -o json
    """
    from bookie.spark.reread.access_log import files_of  # noqa: PLC0415
    from bookie.spark.reread.replay import replay  # noqa: PLC0415

    files = files_of(logs)
    replays = {one.name: one for one in _replays(files, given)}
    options = {name: value for name, value in given.items() if name not in {"by", "target"}}
    with job.open(logs=[[str(one), one.stat().st_size] for one in files], **options) as state:
        if job.dry_run:
            return job.end(({"replay": name, "done": name in state.done} for name in replays), called="replays")
        outcomes = runs.outcomes(job, state, "replay", replay, replays)
    rows = [{key: value for key, value in one.items() if key not in {"ledgers", "clients"}} for one in outcomes]
    if given["target"]:
        _write(given["target"], rows)
    if given["by"]:
        least = min(outcomes, key=lambda one: int(one["cache_mib"]))
        return job.end(least[f"{given['by']}s"], called=f"{given['by']}s", replay=least["replay"], replays=rows)
    return job.end(rows, called="replays", to=given["target"])


def _numbers(name: str, text: str) -> list[int]:
    parts = text.split(",")
    if not all(one.isdigit() and int(one) > 0 for one in parts):
        raise IncorrectParameter(f"--{name} {text}: must be positive integers separated by commas, such as 64,256")
    return [int(one) for one in parts]


def _replays(files: list[Path], given: dict[str, Any]) -> "Iterator[Replay]":
    from bookie.spark.reread.cache import CacheSettings  # noqa: PLC0415
    from bookie.spark.reread.replay import Replay  # noqa: PLC0415

    paths = tuple(str(path.absolute()) for path in files)
    for entries in _numbers("readahead", given["readahead"]):
        for adaptive in (False, True) if given["adaptive"] else (False,):
            for size in _numbers("cache", given["cache"]):
                settings = CacheSettings(
                    size * MIB, given["segment"] * MIB, entries, given["readahead_bytes"], adaptive=adaptive
                )
                yield Replay(paths, settings, given["directories"])


def _write(target: Path, rows: list[dict[str, Any]]) -> None:
    curves: dict[str, list[tuple[float, float]]] = {}
    for row in rows:
        name = f"{row['readahead_entries']} ahead{', adaptive' if row['adaptive'] else ''}"
        curves.setdefault(name, []).append((row["cache_mib"], row["reads_per_entry"]))
    drawing = line_plot(
        {name: sorted(curve) for name, curve in curves.items()},
        "read cache, MiB",
        "disk reads per entry served",
        by_doublings=(True, True),
        dots=True,
    )
    write_file(target / "thrash.svg", drawing.encode())
    write_file(target / "report.html", page("Read cache, replayed", {"Disk reads per entry": drawing}, rows).encode())
