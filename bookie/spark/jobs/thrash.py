"""`bkpipe thrash`: how often disks read an entry before it is served, by cache size and readahead, from access logs."""

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
@click.option("--cache", default="64,128,256,512,1024", show_default=True, metavar="MIB,...", help="Read cache sizes.")
@click.option("--readahead", default="1000", show_default=True, metavar="N,...", help="Entries read ahead.")
@click.option("--readahead-bytes", type=click.IntRange(0), default=4 * MIB, show_default=True, help="Of them at most.")
@click.option("--segment", type=click.IntRange(1), default=64, show_default=True, help="MiB that are emptied at once.")
@click.option("--adaptive", is_flag=True, help="Also with adaptive readahead.")
@click.option("--directories", type=click.IntRange(1), default=1, show_default=True, help="Ledger directories.")
@click.option("--by", type=click.Choice(("ledger", "client")), help="Tell the worst ones for the smallest cache.")
@target_option("Write thrash.svg and a page.")
@with_runs
@with_job
def command(job: Job, runs: Runs, logs: tuple[Path, ...], **given: Any) -> int:
    """Disk reads per entry served, against cache size and readahead, from access logs.

    LOGS are files that bookies wrote (accessLogFile, with accessLogSampleRate=1), older ones (.1, .2) are found beside
    them. Every read of what was not in the write cache is replayed in its order against the bookie's own rules of cache
    and readahead. About 1 is what a cache of sufficient size gives; above 2 it is too small. A sample shows fewer
    readers than there are, so its curve is a lower bound.

    \b
    EXAMPLES
      bkpipe thrash /var/log/bookie/access.csv --cache 64,256,1024 --readahead 100,1000 --to build/thrash
      bkpipe thrash access.csv --cache 256 --by client -o json
    """
    from bookie.spark.reread.access_log import files_of  # noqa: PLC0415
    from bookie.spark.reread.replay import replay  # noqa: PLC0415

    files = files_of(logs)
    asked = {one.name: one for one in _replays(files, given)}
    options = {name: value for name, value in given.items() if name not in {"by", "target"}}
    with job.open(logs=[[str(one), one.stat().st_size] for one in files], **options) as state:
        if job.dry_run:
            return job.end(({"replay": name, "done": name in state.done} for name in asked), called="replays")
        outcomes = runs.outcomes(job, state, "replay", replay, asked)
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
        raise IncorrectParameter(f"--{name} {text}: whole numbers above 0 with commas between them, as 64,256")
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
        "times an entry is read from disk",
        by_doublings=(True, True),
        dots=True,
    )
    write_file(target / "thrash.svg", drawing.encode())
    write_file(target / "report.html", page("Read cache, replayed", {"Disk reads per entry": drawing}, rows).encode())
