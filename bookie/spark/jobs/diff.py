"""`bkpipe diff`: compares the ledgers of two clusters, and on request their entries."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bookie.durable import write_file
from bookie.spark.contents import common_ends, compared_contents, sampled
from bookie.spark.job import Cluster, Job, with_cluster, with_job, with_spark
from bookie.spark.job_options import ledgers_option, target_option, unit_option
from bookie.spark.planning import clipped, ledger_units, planned
from bookie.spark.sessions import Sessions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

COMPARED = ("state", "last_entry", "length", "digest_type", "metadata")
LISTED_MAX = 1000
LEDGERS = "ledgers"
"""The unit of work that compares all metadata."""


@click.command()
@with_cluster
@click.option("--other", required=True, metavar="URI", help="Metadata service URI of the other cluster.")
@ledgers_option()
@click.option(
    "--content", is_flag=True, help="Also compare the entries by checksums; this reads all of them from both clusters."
)
@click.option(
    "--percent",
    type=click.IntRange(1, 100),
    default=100,
    show_default=True,
    help="Share of the ledgers to read, with --content.",
)
@unit_option(2000)
@target_option("Directory to write all differences to, as JSON lines.")
@with_spark
@with_job
def command(
    job: Job, cluster: Cluster, spark: Sessions, other: str, ledgers: str, target: Path | None, **given: Any
) -> int:
    """Compare the ledgers of two clusters by id.

    A difference is a ledger that only one cluster has, or whose state, last entry, length, digest type or custom
    metadata differ. The bookies of a ledger are not compared.

    With --content, entries are read, verified and compared by checksums, 4096 at a time, of ledgers that are closed in
    both clusters and have the same last entry; `content` names the first such stretch that differs. A ledger that is
    open in either cluster is read up to the entry that both have confirmed, which `open compared to` shows; it is not
    fenced, and entries added later are not compared. An entry that no replica returns counts as a difference.

    The exit code is 3 when there are differences.

    \b
    EXAMPLES
      bkpipe diff -u grpc://h1:3182 --other zk+hierarchical://h2:2181/ledgers
      bkpipe diff -u grpc://h1:3182 --other grpc://h2:3182 --content --state /diffs/state --to /diffs/found
    """
    options = {"uri": cluster.uri, "other": other, "ledgers": ledgers, "to": str(target), **given}
    from bookie.spark.options import Options  # noqa: PLC0415  # --help does not need it

    ranges = Options(job.name, {"ledgers": ledgers}).ranges("ledgers")
    with job.open(**options) as state:

        def units() -> list[str]:
            if not given["content"]:
                return []
            return ledger_units(cluster.uri, dict(cluster.settings), ranges, given["unit"])

        if job.dry_run:
            looked_at = [{"cluster": uri, "format": "bookkeeper-ledgers"} for uri in (cluster.uri, other)]
            return job.end([*looked_at, *({"content_of": one} for one in units())], called="units")
        todo = [LEDGERS, *planned(state, units)]
        if any(one not in state.done for one in todo):
            with spark.open(job.name) as session:
                for one in job.left(todo, "units"):
                    if one == LEDGERS:
                        state.note(one, **_compared(session, cluster, other, ledgers, target))
                    else:
                        asked_for = clipped(one, ranges)
                        state.note(one, **_read(session, cluster, other, (one, asked_for), given["percent"], target))
        return _tell(job, [state.done[one] for one in todo], content=given["content"])


def _tell(job: Job, facts: list[dict[str, Any]], *, content: bool) -> int:
    metadata, *contents = facts
    counts = dict(metadata["counts"])
    rows = metadata["rows"]
    totals: dict[str, Any] = {}
    if content:
        counts["content"] = sum(one["differ"] for one in contents)
        rows = [*rows, *(row for one in contents for row in one["rows"])][:LISTED_MAX]
        totals = {name: sum(one[name] for one in contents) for name in ("ledgers_read", "open_read", "entries_read")}
        pairs = [pair for one in contents for pair in one["open_to"].items()]
        totals["open_compared_to"] = dict(pairs[:LISTED_MAX])
    return job.end(rows, called="differences", well=not sum(counts.values()), **counts, **totals)


def _read(
    session: "SparkSession", cluster: Cluster, other: str, unit: tuple[str, str], percent: int, target: Path | None
) -> dict[str, Any]:
    """Compare the entries of a unit's ledgers that can be equal."""
    from pyspark.sql import functions as f  # noqa: PLC0415

    name, ledgers = unit
    a, b = (_sorted_metadata(session, cluster, uri, ledgers) for uri in (cluster.uri, other))
    both = a.alias("a").join(b.alias("b"), "ledger_id")
    open_somewhere = f.expr("a.state != 'CLOSED' or b.state != 'CLOSED'")
    same_end = f.expr("a.last_entry = b.last_entry and a.last_entry >= 0")
    both = both.where(open_somewhere | same_end).select("ledger_id", open_somewhere.alias("open"))
    chosen = {row["ledger_id"]: row["open"] for row in both.collect()}
    ids = sampled(sorted(chosen), percent)
    here = cluster.options()
    there = {**here, "metadataServiceUri": other}
    ends = common_ends(here, there, [one for one in ids if chosen[one]])
    found = compared_contents(session, here, there, ids, ends) if ids else []
    rows = [
        {
            "ledger_id": row["ledger_id"],
            "difference": "content",
            "columns": f"entries {row['first']} to {row['last']}",
        }
        for row in found
        if row["first"] is not None
    ]
    if target is not None and rows:
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        write_file(target / f"content-{name}.json", lines.encode())
    entries = sum(row["entries"] for row in found)
    return {
        "rows": rows[:LISTED_MAX],
        "differ": len(rows),
        "ledgers_read": len(ids),
        "entries_read": entries,
        "open_read": len(ends),
        "open_to": {str(ledger): end - 1 for ledger, end in list(ends.items())[:LISTED_MAX]},
    }


def _compared(
    session: "SparkSession", cluster: Cluster, other: str, ledgers: str, target: Path | None
) -> dict[str, Any]:
    from pyspark.sql import functions as f  # noqa: PLC0415

    here = _sorted_metadata(session, cluster, cluster.uri, ledgers)
    there = _sorted_metadata(session, cluster, other, ledgers)
    both = here.alias("a").join(there.alias("b"), "ledger_id", "full_outer")
    changed = f.concat_ws(
        ",", *(f.when(~f.col(f"a.{name}").eqNullSafe(f.col(f"b.{name}")), f.lit(name)) for name in COMPARED)
    )
    difference = (
        f.when(f.col("b.state").isNull(), f.lit("only_here"))
        .when(f.col("a.state").isNull(), f.lit("only_there"))
        .when(changed != "", f.lit("differs"))
    )
    columns = f.when(difference == "differs", changed).otherwise(f.lit(""))
    found = both.select("ledger_id", difference.alias("difference"), columns.alias("columns"))
    found = found.where("difference is not null").persist()
    try:
        counts = {row["difference"]: row["count"] for row in found.groupBy("difference").count().collect()}
        rows = [row.asDict() for row in found.orderBy("ledger_id").limit(LISTED_MAX).collect()]
        if target is not None:
            found.orderBy("ledger_id").coalesce(1).write.mode("overwrite").json(str(target))
    finally:
        found.unpersist()
    return {"rows": rows, "counts": {name: counts.get(name, 0) for name in ("only_here", "only_there", "differs")}}


def _sorted_metadata(session: "SparkSession", cluster: Cluster, uri: str, ledgers: str) -> "DataFrame":
    """Return the metadata with custom metadata as a sorted array, because Spark cannot compare maps."""
    from pyspark.sql import functions as f  # noqa: PLC0415

    options = {**cluster.options(ledgers=ledgers), "metadataServiceUri": uri}
    frame = session.read.format("bookkeeper-ledgers").options(**options).load()
    entries = f.array_sort(f.map_entries("metadata")).alias("metadata")
    return frame.select("ledger_id", *(name for name in COMPARED if name != "metadata"), entries)
