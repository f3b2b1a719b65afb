"""`bkpipe rereplicate`: what lost bookies held, planned as a table, then copied by tasks, under locks."""

from collections import Counter
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bookie.errors import IllegalOperation
from bookie.spark.job import Cluster, Job, with_cluster, with_job, with_spark
from bookie.spark.planning import in_groups
from bookie.spark.plots import bar_plot, page
from bookie.spark.restoring import restore_ledgers
from bookie.spark.sessions import Sessions
from bookie.spark.state import State, write_file

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PLAN = "plan"
DONE = ("copied", "whole", "gone")
NOT_DONE = ("held", "off", "open", "failed")
OUTCOME = (
    "ledger bigint, state string, entries bigint, bytes bigint, taken_by array<string>, paused_ms bigint, error string"
)
PACED = {"diskWeightBasedPlacementEnabled": "true", "weightPacedReplicationEnabled": "true"}
"""Settings of the client where the user gives none: bookies with more room get more, the others pause."""


@click.command()
@with_cluster
@click.option(
    "--lost", multiple=True, metavar="BOOKIE", help="Its id; repeat it.  [default: all that are not registered]"
)
@click.option("--ledgers", default="", metavar="IDS", help="Only these: 12,15-18.  [default: all]")
@click.option("--fence-open", is_flag=True, help="Fence and close open ledgers that a lost bookie takes part in.")
@click.option("--rate", default="0", metavar="BYTES", help="Copied a second, of all tasks: 20m.  [default: no limit]")
@click.option("--unit", type=click.IntRange(1), default=200, show_default=True, help="Ledgers that are done at once.")
@click.option("--tasks", type=click.IntRange(1), default=4, show_default=True, help="Tasks of such a unit.")
@click.option(
    "--to",
    "target",
    required=True,
    type=click.Path(path_type=Path, file_okay=False),
    help="Write the tables plan/ and outcome/ and report.html there.",
)
@click.option(
    "--format",
    "kind",
    type=click.Choice(("parquet", "json")),
    default="parquet",
    show_default=True,
    help="Of the tables.",
)
@with_spark
@with_job
def command(  # a parameter an option
    job: Job, cluster: Cluster, spark: Sessions, lost: tuple[str, ...], ledgers: str, unit: int, **given: Any
) -> int:
    """What lost bookies held, copied to others: a plan, then paced copies beside auto-recovery.

    The plan is a table of every part of a ledger that a lost bookie held, from the metadata alone: a bookie that is
    only restarting is in it too, so look at --dry-run first. Then tasks copy ledger by ledger, digests verified, and
    name the new bookies in the metadata when all is acknowledged. Each ledger is locked as replicators lock it: what
    one of them works on is left to it and told as held. Where auto-recovery is disabled for the cluster, nothing is
    copied. New bookies are chosen by free disk; after a copy to a bookie with less room than the median the task
    pauses, up to 10 s (weightPacedReplicationMaxPauseMs).

    The exit code is 3 when ledgers are not done: held by others, open without --fence-open, or failed. The same call
    with --state tries those again.

    \b
    EXAMPLES
      bkpipe rereplicate -u grpc://h1:3182 --to build/copied --dry-run
      bkpipe rereplicate --lost h7:3181 --rate 50m --to /copies/h7 --state /copies/h7.state
    """
    rate = _wrong_or_rate(ledgers, given["rate"])
    with job.open(uri=cluster.uri, lost=sorted(lost), ledgers=ledgers, unit=unit, kind=given["kind"]) as state:
        if PLAN in state.done and all(one in state.done for one in state.done[PLAN]["units"]):
            return _tell(job, state, {}, given["target"])
        with spark.open(job.name) as session:
            into = None if job.dry_run else (given["target"], given["kind"])
            plan = state.done.get(PLAN) or _plan(session, cluster, lost, ledgers, unit, into)
            if job.dry_run:
                return job.end(plan["bookies"], called="bookies", ledgers=plan["ledgers"])
            if PLAN not in state.done:
                state.note(PLAN, **plan)
            unfinished: dict[str, Any] = {}
            work = partial(
                restore_ledgers,
                uri=cluster.uri,
                given={**PACED, **cluster.settings, "replicationRateByBytes": str(-(-rate // given["tasks"]) or -1)},
                lost=frozenset(plan["lost"]),
                fence=given["fence_open"],
            )
            for one in job.left(plan["units"], "units"):
                ids = [int(ledger) for ledger in one.split(",")]
                rows = session.sparkContext.parallelize(ids, given["tasks"]).mapPartitions(work).collect()
                facts = _written(session, rows, given["target"] / "outcome" / f"unit={ids[0]}", given["kind"])
                if all(row["state"] in DONE for row in rows):
                    state.note(one, **facts)
                else:
                    unfinished[one] = facts
        return _tell(job, state, unfinished, given["target"])


def _wrong_or_rate(ledgers: str, rate: str) -> int:
    """Bytes a second, 0 for no limit. ConfigurationError: a wrong option, before anything is done."""
    from bookie.spark.options import Options  # noqa: PLC0415  # help loads nothing of it

    options = Options("rereplicate", {"ledgers": ledgers, "rate": rate})
    options.ranges("ledgers")
    return int(options.size("rate", 0, low=0))


def _plan(
    session: "SparkSession",
    cluster: Cluster,
    named: tuple[str, ...],
    ledgers: str,
    unit: int,
    into: tuple[Path, str] | None,
) -> dict[str, Any]:
    """Who is lost, the ledgers by units, and sums by lost bookie; the table is written. IllegalOperation."""
    from pyspark.sql import functions as f  # noqa: PLC0415

    members = session.read.format("bookkeeper-bookies").options(**cluster.options()).load().collect()
    writable = {row["bookie_id"] for row in members if row["mode"] == "writable"}
    if taking := sorted(writable.intersection(named)):
        raise IllegalOperation(f"bookie {', '.join(taking)} takes writes: stop it, or make it read-only, first")
    registered = [row["bookie_id"] for row in members if row["mode"] != "down"]
    parts = _parts(session, cluster, ledgers)
    chosen = f.col("bookie_id").isin(*named) if named else ~f.col("bookie_id").isin(*registered)
    parts = parts.where(chosen).persist()
    try:
        if into:
            directory, kind = into
            parts.coalesce(1).write.mode("overwrite").format(kind).save(str(directory / "plan"))
        sums = (
            f.count_distinct("ledger_id").alias("ledgers"),
            f.count("*").alias("parts"),
            f.count_if(f.col("entries").isNull()).alias("open"),
            f.coalesce(f.sum("entries"), f.lit(0)).alias("entries"),
            f.coalesce(f.sum("bytes"), f.lit(0)).alias("bytes"),
        )
        bookies = [row.asDict() for row in parts.groupBy("bookie_id").agg(*sums).orderBy("bookie_id").collect()]
        ids = [str(row["ledger_id"]) for row in parts.select("ledger_id").distinct().orderBy("ledger_id").collect()]
    finally:
        parts.unpersist()
    units = [",".join(group) for group in in_groups(ids, unit)]
    return {"lost": [row["bookie_id"] for row in bookies], "units": units, "ledgers": len(ids), "bookies": bookies}


def _parts(session: "SparkSession", cluster: Cluster, ledgers: str) -> "DataFrame":
    """A row for each place of each segment; entries and bytes are what lies there on average, null where it is open."""
    from pyspark.sql import functions as f  # noqa: PLC0415

    options = cluster.options(ledgers=ledgers)
    frame = session.read.format("bookkeeper-ledgers").options(**options).load()
    segments = frame.select("*", f.posexplode("ensembles").alias("at", "segment"))
    last = f.expr("coalesce(try_element_at(ensembles, at + 2).first_entry - 1, last_entry)")
    each = f.col("write_quorum") / f.col("ensemble_size")
    count = f.col("last_entry_here") - f.col("first_entry") + 1
    return (
        segments.withColumn("last_entry_here", last)
        .withColumn("first_entry", f.col("segment.first_entry"))
        .withColumn("entries", f.ceil(count * each).cast("bigint"))
        .withColumn("bytes", (f.col("length") / (f.col("last_entry") + 1) * count * each).cast("bigint"))
        .where("entries > 0 or entries is null")
        .select(
            "ledger_id",
            "state",
            "first_entry",
            f.col("last_entry_here").alias("last_entry"),
            f.explode("segment.bookies").alias("bookie_id"),
            "entries",
            "bytes",
        )
    )


def _written(session: "SparkSession", rows: list[dict[str, Any]], where: Path, kind: str) -> dict[str, Any]:
    """The rows of a unit as a table; their sums."""
    session.createDataFrame(rows, OUTCOME).coalesce(1).write.mode("overwrite").format(kind).save(str(where))
    return {
        "states": dict(Counter(row["state"] for row in rows)),
        "taken_by": dict(Counter(bookie for row in rows for bookie in row["taken_by"])),
        **{name: sum(row[name] for row in rows) for name in ("entries", "bytes", "paused_ms")},
        "left": [
            {name: row[name] for name in ("ledger", "state", "error")} for row in rows if row["state"] in NOT_DONE
        ],
    }


def _tell(job: Job, state: State, unfinished: dict[str, Any], target: Path) -> int:
    plan = state.done[PLAN]
    facts = [*(state.done[one] for one in plan["units"] if one in state.done), *unfinished.values()]
    states, taken = Counter[str](), Counter[str]()
    for one in facts:
        states.update(one["states"])
        taken.update(one["taken_by"])
    sums = {name: sum(one[name] for one in facts) for name in ("entries", "bytes", "paused_ms")}
    left = [row for one in facts for row in one["left"]]
    held = {
        row["bookie_id"]: {"closed": float(row["parts"] - row["open"]), "open": float(row["open"])}
        for row in plan["bookies"]
    }
    text = page(
        "Copies of what lost bookies held",
        {
            "Parts of ledgers by lost bookie": bar_plot(held, "parts"),
            "Places taken by others": bar_plot({one: {"places": float(taken[one])} for one in sorted(taken)}, "places"),
        },
        plan["bookies"],
        [
            f"{plan['ledgers']} ledgers; {', '.join(f'{count} {name}' for name, count in sorted(states.items()))}.",
            f"{sums['entries']} entries, {sums['bytes']} bytes were copied.",
        ],
    )
    write_file(target / "report.html", text.encode())
    counts = {name: states[name] for name in (*DONE, *NOT_DONE)}
    return job.end(left, called="left", well=not left, lost=plan["lost"], ledgers=plan["ledgers"], **counts, **sums)
