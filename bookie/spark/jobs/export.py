"""`bkpipe export`: writes ledgers as Parquet, one directory for each, and a manifest to verify them against."""

import base64
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bookie.durable import write_file
from bookie.errors import IllegalOperation
from bookie.spark.job import Cluster, Job, with_cluster, with_job, with_spark
from bookie.spark.job_options import ledgers_option, target_option, unit_option
from bookie.spark.planning import in_groups
from bookie.spark.sessions import Sessions
from bookie.spark.state import State

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from bookie.client import BookKeeper

MANIFEST = "manifest.json"


@click.command()
@with_cluster
@ledgers_option("all closed ledgers")
@click.option("--log", "log_name", help="Export the ledgers of this log, in its order.")
@unit_option(200)
@target_option("Directory to write to; it must have this path on all workers.", required=True)
@with_spark
@with_job
def command(
    job: Job, cluster: Cluster, spark: Sessions, ledgers: str, log_name: str | None, unit: int, target: Path
) -> int:
    """Write ledgers as Parquet: a directory ledger_id=N/ for each, and manifest.json.

    Digests are verified as entries are read. The manifest has the number of entries, bytes and a CRC of each ledger:
    the sum of the CRC32 of each entry's decimal id followed by its payload. It is computed from the files that were
    written, and the total is compared with what was read from the bookies. Open ledgers are exported only if they are
    named, up to the LAC. Nothing is fenced.

    \b
    EXAMPLES
      bkpipe export -u grpc://h1:3182 --to /exports/today
      bkpipe export --log orders --to /exports/orders --state /exports/orders.state
    """
    options = {"uri": cluster.uri, "ledgers": ledgers, "log": log_name, "to": str(target)}
    named = _named(ledgers, log_name)
    with job.open(**options) as state, cluster.client() as client:
        ids = list(named) or _ids(client, log_name)
        left = [one for one in ids if str(one) not in state.done]
        if job.dry_run:
            return job.end(({"ledger": one, "done": one not in left} for one in ids), called="ledgers")
        if left:
            with spark.open(job.name) as session, job.progress("ledgers") as tell:
                for group in in_groups(left, unit):
                    tell(len(state.done), len(ids))
                    _export(session, cluster, client, group, target, state)
        done = {str(one): state.done[str(one)] for one in ids}
    manifest = {"version": 1, "source": cluster.uri, "log": log_name, "order": ids, "ledgers": done}
    write_file(target / MANIFEST, json.dumps(manifest, indent=1).encode())
    return job.end(
        ledgers=len(ids),
        entries=sum(one["entries"] for one in done.values()),
        bytes=sum(one["bytes"] for one in done.values()),
        manifest=str(target / MANIFEST),
    )


def _named(ledgers: str, log_name: str | None) -> tuple[int, ...]:
    """Return the ids of --ledgers; () if it is not given.

    Raises:
        ConfigurationError: the ids are invalid.
        IllegalOperation: --ledgers and --log are both given.
    """
    from bookie.spark.options import Options  # noqa: PLC0415  # --help does not need the client

    if ledgers and log_name:
        raise IllegalOperation("--ledgers and --log cannot be combined; give one of them")
    return Options("export", {"ledgers": ledgers}).ids("ledgers")


def _ids(client: "BookKeeper", log_name: str | None) -> list[int]:
    """Return the ledgers of the log, or all closed ledgers."""
    if log_name:
        return list(client.logs.get(log_name).value.ledgers)
    return [one for one in client.list_ledgers() if client.ledger_metadata(one).state.name == "CLOSED"]


def checked(frame: "DataFrame") -> "DataFrame":
    """Add the column `crc`, whose sum is in the manifest."""
    from pyspark.sql import functions as sql  # noqa: PLC0415

    named = sql.concat(sql.col("entry_id").cast("string").cast("binary"), sql.col("value"))
    return frame.withColumn("crc", sql.crc32(named))


def _export(
    session: "SparkSession", cluster: Cluster, client: "BookKeeper", group: list[int], target: Path, state: State
) -> None:
    from pyspark.sql import Observation  # noqa: PLC0415
    from pyspark.sql import functions as sql  # noqa: PLC0415

    options = cluster.options(ledgers=",".join(map(str, group)))
    seen = Observation()
    source = checked(session.read.format("bookkeeper").options(**options).load())
    source = source.observe(seen, sql.count("*").alias("entries"), sql.sum("crc").alias("crc"))
    columns = source.select("ledger_id", "entry_id", "value", "length", "lac", "crc")
    writing = columns.drop("crc").write.partitionBy("ledger_id").mode("overwrite")
    writing.option("partitionOverwriteMode", "dynamic").parquet(str(target))
    paths = [str(path) for one in group if (path := target / f"ledger_id={one}").is_dir()]
    rows: dict[int, Any] = {}
    if paths:
        written = checked(session.read.option("basePath", str(target)).parquet(*paths))
        sums = (
            sql.count("*").alias("entries"),
            sql.min("entry_id").alias("first"),
            sql.max("entry_id").alias("last"),
            sql.sum(sql.length("value")).alias("bytes"),
            sql.sum("crc").alias("crc"),
        )
        rows = {row["ledger_id"]: row for row in written.groupBy("ledger_id").agg(*sums).collect()}
    read = (seen.get["entries"], seen.get["crc"] or 0)
    kept = (sum(row["entries"] for row in rows.values()), sum(row["crc"] for row in rows.values()))
    if read != kept:
        raise IllegalOperation(
            f"{target}: ledgers {group[0]} to {group[-1]} were read as {read[0]} entries with CRC {read[1]}, written as"
            f" {kept[0]} with {kept[1]}: another process may write there; remove the files and run the export again"
        )
    for one in group:
        state.note(str(one), **_facts(client, one, rows.get(one)))


def _facts(client: "BookKeeper", ledger: int, row: Any) -> dict[str, Any]:
    metadata = client.ledger_metadata(ledger)
    entries = row["entries"] if row else 0
    closed = metadata.state.name == "CLOSED"
    whole = entries == (row["last"] + 1 if row else 0) and (not closed or entries == metadata.last_entry + 1)
    if not whole:
        raise IllegalOperation(
            f"ledger {ledger}: {entries} of {metadata.last_entry + 1} entries were read; check it with bkpipe audit"
        )
    return {
        "entries": entries,
        "bytes": row["bytes"] if row else 0,
        "crc": row["crc"] if row else 0,
        "closed": closed,
        "ensemble_size": metadata.ensemble_size,
        "write_quorum": metadata.write_quorum,
        "ack_quorum": metadata.ack_quorum,
        "digest_type": metadata.digest_type.name if metadata.digest_type is not None else "CRC32",
        "custom_metadata": {key: base64.b64encode(value).decode() for key, value in metadata.custom.items()},
    }
