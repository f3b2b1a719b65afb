"""`bkpipe usage`: sums up bytes by a key of the ledgers' custom metadata."""

from typing import TYPE_CHECKING, Any

import click

from bookie.spark.job import Cluster, Job, with_cluster, with_job, with_spark
from bookie.spark.sessions import Sessions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@click.command()
@with_cluster
@click.option(
    "--by", "key", default="application", show_default=True, metavar="KEY", help="Key of the custom metadata."
)
@click.option(
    "--top", type=click.IntRange(1), default=100, show_default=True, help="Number of values to show, the largest first."
)
@with_spark
@with_job
def command(job: Job, cluster: Cluster, spark: Sessions, key: str, top: int) -> int:
    """Sum up bytes by the values of a key in the ledgers' custom metadata.

    `bytes` counts the entries of closed ledgers, `stored` is that times the write quorum. The length of an open ledger
    is not in the metadata, so open ledgers are only counted. Ledgers without the key are shown under "-".

    \b
    EXAMPLES
      bkpipe usage -u grpc://h1:3182 --by pulsar/managed-ledger
      bkpipe usage --by application --top 10 -o json
    """
    with job.open(uri=cluster.uri, key=key, top=top) as state:
        if job.dry_run:
            return job.end([{"format": "bookkeeper-ledgers", "by": key, "done": key in state.done}], called="units")
        if key not in state.done:
            with spark.open(job.name) as session:
                for unit in job.left([key], "ledgers"):
                    state.note(unit, **_used(session, cluster, key, top))
        found = state.done[key]
        return job.end(found["rows"], called="values", **found["sums"])


def _used(session: "SparkSession", cluster: Cluster, key: str, top: int) -> dict[str, Any]:
    from pyspark.sql import functions as f  # noqa: PLC0415

    ledgers = session.read.format("bookkeeper-ledgers").options(**cluster.options()).load()
    columns = (
        f.count("*").alias("ledgers"),
        f.sum(f.when(f.col("state") != "CLOSED", 1).otherwise(0)).alias("open"),
        f.coalesce(f.sum("length"), f.lit(0)).alias("bytes"),
        f.coalesce(f.sum(f.col("length") * f.col("write_quorum")), f.lit(0)).alias("stored"),
    )
    value = f.coalesce(f.decode(f.col("metadata")[key], "UTF-8"), f.lit("-")).alias("value")
    by_value = ledgers.groupBy(value).agg(*columns).persist()
    try:
        rows = [row.asDict() for row in by_value.orderBy(f.desc("stored"), "value").limit(top).collect()]
        names = ("ledgers", "open", "bytes", "stored")
        total = by_value.agg(f.count("*").alias("distinct"), *(f.sum(name).alias(name) for name in names)).first()
    finally:
        by_value.unpersist()
    return {"rows": rows, "sums": {name: number or 0 for name, number in total.asDict().items()} if total else {}}
