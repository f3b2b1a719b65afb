"""`bkpipe diff`: the ledgers of two clusters beside each other."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bookie.spark.job import Cluster, Job, with_cluster, with_job, with_spark
from bookie.spark.sessions import Sessions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

COMPARED = ("state", "last_entry", "length", "digest_type", "metadata")
LISTED_MAX = 1000


@click.command()
@with_cluster
@click.option("--other", required=True, metavar="URI", help="The metadata of the other cluster.")
@click.option("--ledgers", default="", metavar="IDS", help="Only these: 12,15-18.  [default: all]")
@click.option(
    "--to",
    "target",
    type=click.Path(path_type=Path, file_okay=False),
    help="Write all differences there, as JSON lines.",
)
@with_spark
@with_job
def command(job: Job, cluster: Cluster, spark: Sessions, other: str, ledgers: str, target: Path | None) -> int:
    """The ledgers of two clusters beside each other, by id.

    A ledger that only one of them has is told, and one whose state, last entry, length, digest type or custom metadata
    differ. Where the bookies of a ledger stand is not compared. The exit code is 3 when there are differences.

    \b
    EXAMPLES
      bkpipe diff -u grpc://h1:3182 --other zk+hierarchical://h2:2181/ledgers
    """
    asked = {"uri": cluster.uri, "other": other, "ledgers": ledgers, "to": str(target)}
    with job.open(**asked) as state:
        if job.dry_run:
            planned = [{"cluster": uri, "format": "bookkeeper-ledgers"} for uri in (cluster.uri, other)]
            return job.end(planned, called="units")
        if "ledgers" not in state.done:
            with spark.open(job.name) as session:
                for unit in job.left(["ledgers"], "clusters"):
                    state.note(unit, **_compared(session, cluster, other, ledgers, target))
        found = state.done["ledgers"]
        counts = found["counts"]
        return job.end(found["rows"], called="differences", well=not sum(counts.values()), **counts)


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
    told = f.when(difference == "differs", changed).otherwise(f.lit(""))
    found = both.select("ledger_id", difference.alias("difference"), told.alias("columns"))
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
    """Maps cannot be compared; their entries in order can."""
    from pyspark.sql import functions as f  # noqa: PLC0415

    options = {**cluster.options(ledgers=ledgers), "metadataServiceUri": uri}
    frame = session.read.format("bookkeeper-ledgers").options(**options).load()
    entries = f.array_sort(f.map_entries("metadata")).alias("metadata")
    return frame.select("ledger_id", *(name for name in COMPARED if name != "metadata"), entries)
