"""`bkpipe logscan`: scans entry log files: how much of them is garbage, which could be deleted, and what is damaged."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bookie.durable import write_file
from bookie.spark.job import Job, with_job, with_spark
from bookie.spark.job_options import client_option, password_option, target_option, unit_option, uri_option
from bookie.spark.planning import in_groups, planned, units_done
from bookie.spark.plots import bar_plot, page
from bookie.spark.sessions import Sessions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DRAWN_MAX = 40
SECRET = ("password", "client_settings")
"""Options that contain passwords, which are not recorded in the state of a job."""


@click.command()
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@uri_option("ledgers that it does not have are garbage, and it has the digest types and passwords of the others")
@client_option
@click.option(
    "--validate",
    type=click.Choice(("none", "header", "digest")),
    default="digest",
    show_default=True,
    help="What to verify in each entry.",
)
@password_option("Password of ledgers with digest type HMAC, if it is not in the metadata")
@click.option("--active", is_flag=True, help="Also scan the log that is being written.")
@unit_option(64, "Logs")
@target_option("Directory to write report.html to.")
@with_spark
@with_job
def command(job: Job, spark: Sessions, paths: Sequence[str], **given: Any) -> int:
    """Scan entry log files for garbage, deletable logs and damage.

    PATH is a log, a directory of logs, a ledger directory or a glob, on each machine that runs tasks. Files are opened
    read-only, and the bookie may be running. `garbage` is the share of a log's bytes that belong to ledgers without
    metadata; a log that has nothing else is `deletable`. Copies that compaction left behind count as live. `bad`
    entries have an invalid digest (or header, with --validate header); `lost` bytes belong to no record.

    The exit code is 3 when anything is damaged.

    \b
    EXAMPLES
      bkpipe logscan -u grpc://h1:3182 /data/ledgers --to build/logs
      bkpipe logscan --validate header '/data/*/current/*.log' -o json
    """
    from bookie.spark.formats.files import DataFile, find_files, finished  # noqa: PLC0415  # --help does not need it
    from bookie.spark.options import Options  # noqa: PLC0415

    def wanted(file: DataFile) -> bool:
        return given["active"] or finished(file)

    def logs() -> list[str]:
        found = [find_files(Options(job.name, {"path": one}), ".log", wanted) for one in paths]
        names = sorted({file.path for files in found for file in files})
        return ["\n".join(group) for group in in_groups(names, given["unit"])]

    kept = {name: one for name, one in given.items() if name not in {"target", *SECRET}}
    options = {"paths": sorted(paths), **kept}
    with job.open(**options) as state:
        if job.dry_run:
            names = [name for unit in logs() for name in unit.splitlines()]
            return job.end([{"log": name} for name in names], called="logs")
        units = planned(state, logs)
        if any(unit not in state.done for unit in units):
            with spark.open(job.name) as session:
                for unit in job.left(units, "logs"):
                    state.note(unit, rows=_scanned(session, unit.splitlines(), given))
        rows = [row for _, facts in units_done(state) for row in facts["rows"]]  # type: ignore[attr-defined]
        return _tell(job, sorted(rows, key=lambda row: row["log"]), given["target"])


def _scanned(session: "SparkSession", files: Sequence[str], given: Mapping[str, Any]) -> list[dict[str, Any]]:
    import json  # noqa: PLC0415

    from pyspark.sql import functions as f  # noqa: PLC0415

    cluster = {f"bookkeeper.{key}": value for key, value in given["client_settings"].items()}
    cluster = {"metadataServiceUri": given["uri"], **cluster} if given["uri"] else {}
    options = {"validate": given["validate"], "onCorruption": "skip", "password": given["password"], **cluster}
    names = [name for name in files if Path(name).exists()]  # garbage collection may have removed some
    if not names:
        return []
    records = session.read.format("bookkeeper-entrylog").options(**options).option("paths", json.dumps(names)).load()
    entry, size = f.col("kind") == "entry", f.col("entry_size").cast("bigint") + 4
    by_ledger = records.groupBy("path", "ledger_id").agg(
        f.sum(f.when(entry, 1).otherwise(0)).alias("entries"),
        f.sum(f.when(entry, size).otherwise(0)).alias("bytes"),
        f.sum(f.when(entry & ~f.coalesce("digest_ok", f.lit(True)), 1).otherwise(0)).alias("bad"),
        f.sum(f.when(f.col("kind") == "garbage", f.col("entry_size").cast("bigint")).otherwise(0)).alias("lost"),
    )
    live = f.lit(1)
    if given["uri"]:
        ledgers = session.read.format("bookkeeper-ledgers").options(**cluster).load()
        by_ledger = by_ledger.join(ledgers.select("ledger_id", f.lit(1).alias("there")), "ledger_id", "left")
        live = f.coalesce("there", f.lit(0))
    rows = by_ledger.groupBy("path").agg(
        f.count("ledger_id").alias("ledgers"),
        *(f.sum(name).alias(name) for name in ("entries", "bytes", "bad", "lost")),
        f.sum(f.when(live == 1, f.col("bytes")).otherwise(0)).alias("live"),
    )
    return [_row(row.asDict(), known=bool(given["uri"])) for row in rows.collect()]


def _row(row: dict[str, Any], *, known: bool) -> dict[str, Any]:
    total, live = row["bytes"], row.pop("live")
    garbage = 1 - live / total if total and known else None
    clean = not row["bad"] and not row["lost"]
    log = row.pop("path")
    return {"log": log, **row, "garbage": garbage, "deletable": known and not live and clean}


def _tell(job: Job, rows: list[dict[str, Any]], target: Path | None) -> int:
    sums = {name: sum(row[name] for row in rows) for name in ("entries", "bytes", "bad", "lost")}
    garbage = sum(row["bytes"] * (row["garbage"] or 0) for row in rows)
    facts = {**sums, "garbage_bytes": round(garbage), "deletable": sum(row["deletable"] for row in rows)}
    if target is not None:
        worst = sorted(rows, key=lambda row: -(row["bytes"] * (row["garbage"] or 0)))[:DRAWN_MAX]
        bars = {}
        for row in worst:
            mib = row["bytes"] / 2**20
            bars[Path(row["log"]).name] = {
                "live": round(mib * (1 - (row["garbage"] or 0)), 3),
                "garbage": round(mib * (row["garbage"] or 0), 3),
            }
        plots = {f"The {len(worst)} logs with the most garbage": bar_plot(bars, "MiB")}
        write_file(target / "report.html", page("Entry logs", plots, rows).encode())
    return job.end(rows, called="logs", well=not sums["bad"] and not sums["lost"], **facts)
