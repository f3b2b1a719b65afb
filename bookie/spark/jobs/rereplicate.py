"""`bkpipe rereplicate`: plans as a table what lost bookies stored or an audit found, then has tasks repair it."""

from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bookie.durable import write_file
from bookie.errors import IllegalOperation
from bookie.plural import counted
from bookie.spark.findings import counts_left, parts_found, remedies
from bookie.spark.job import Cluster, Job, with_cluster, with_job, with_spark
from bookie.spark.job_options import format_option, ledgers_option, target_option, unit_option
from bookie.spark.planning import PLAN, in_groups
from bookie.spark.plots import bar_plot, page
from bookie.spark.restoring import restore_ledgers, rewrite_ledgers
from bookie.spark.sessions import Sessions
from bookie.spark.state import State

if TYPE_CHECKING:
    from pyspark import RDD
    from pyspark.sql import DataFrame, SparkSession

DONE = ("copied", "rewritten", "complete", "deleted")
NOT_DONE = ("locked", "disabled", "open", "failed")
OUTCOME = (
    "ledger bigint, state string, entries bigint, bytes bigint, taken_by array<string>, paused_ms bigint, error string"
)
PACED = {"diskWeightBasedPlacementEnabled": "true", "weightPacedReplicationEnabled": "true"}
"""Settings of the client, unless the user overrides them: bookies with more free space receive more, and tasks pause
after copies to the others.
"""


@click.command()
@with_cluster
@click.option(
    "--lost",
    multiple=True,
    metavar="BOOKIE",
    help="Id of a lost bookie; may be repeated.  [default: all that are not registered]",
)
@click.option(
    "--findings",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    help="Directory of an audit (its --to): repair what it found missing, damaged or different, instead.",
)
@click.option(
    "--replace", is_flag=True, help="With --findings: replace the bookies instead of rewriting their entries."
)
@ledgers_option()
@click.option("--fence-open", is_flag=True, help="Fence and close open ledgers whose ensemble has a lost bookie.")
@click.option(
    "--rate",
    default="0",
    metavar="BYTES",
    help="Most bytes to copy per second, over all tasks, such as 20m.  [default: no limit]",
)
@unit_option(200)
@click.option("--tasks", type=click.IntRange(1), default=4, show_default=True, help="Spark tasks per unit.")
@target_option("Directory to write the tables plan/ and outcome/ and report.html to.", required=True)
@format_option("the tables")
@with_spark
@with_job
def command(  # one parameter for each option
    job: Job, cluster: Cluster, spark: Sessions, lost: tuple[str, ...], ledgers: str, unit: int, **given: Any
) -> int:
    """Copy the ledgers of lost bookies to others: first a plan, then paced copies alongside auto-recovery.

    The plan is a table of all segments of ledgers on lost bookies, from the metadata alone. It includes bookies that
    are only restarting, so check it with --dry-run first. Then tasks copy ledger by ledger, verify digests, and name
    the new bookies in the metadata once everything is acknowledged. Ledgers are locked as replication workers lock
    them; a ledger that one of them is working on is reported as held. If auto-recovery is disabled for the cluster,
    nothing is copied. New bookies are chosen by free space; after a copy to a bookie with less free space than the
    median the task pauses, at most 10 s (weightPacedReplicationMaxPauseMs).

    With --findings, the plan is what an audit found to be MISSING, DIGEST or LENGTH. These entries are written to
    their bookie again, from replicas without findings, and read back: `rewritten`. If the bookie does not accept them
    or is no longer registered, another one replaces it in that segment, as if it were lost. EXTRA does no harm, and
    ERROR and TIMEOUT are not a sign of loss: `remedies` counts them and says what to do.

    The exit code is 3 when ledgers remain: held by others, open without --fence-open, or failed. The same call with
    --state tries them again.

    \b
    EXAMPLES
      bkpipe rereplicate -u grpc://h1:3182 --to build/copied --dry-run
      bkpipe rereplicate --lost h7:3181 --rate 50m --to /copies/h7 --state /copies/h7.state
      bkpipe rereplicate --findings /audits/today --to /audits/mended
    """
    rate = _wrong_or_rate(ledgers, given["rate"])
    findings = given["findings"]
    if lost and findings:
        raise IllegalOperation("--lost and --findings cannot be combined; give one of them")
    chosen = {"lost": sorted(lost), "findings": findings and str(findings), "replace": given["replace"]}
    with job.open(uri=cluster.uri, ledgers=ledgers, unit=unit, kind=given["kind"], **chosen) as state:
        if PLAN in state.done and all(one in state.done for one in state.done[PLAN]["units"]):
            return _tell(job, state, {}, given["target"])
        with spark.open(job.name) as session:
            into = given["target"], given["kind"]

            def parts() -> "DataFrame":
                return parts_found(session, findings, ledgers) if findings else _lost(session, cluster, lost, ledgers)

            plan = state.done.get(PLAN)
            if plan is None:
                plan = _planned(parts(), unit, None if job.dry_run else into)
                plan["remedies"] = remedies(counts_left(session, findings, ledgers), findings) if findings else []
            if job.dry_run:
                extra = {"remedies": plan["remedies"]} if findings else {}
                return job.end(plan["bookies"], called="bookies", ledgers=plan["ledgers"], **extra)
            if PLAN not in state.done:
                state.note(PLAN, **plan)
            mended = _mending(session, cluster, plan, into, {**given, "rate": rate})
            unfinished: dict[str, Any] = {}
            for one in job.left(plan["units"], "units"):
                rows = mended(ids := [int(ledger) for ledger in one.split(",")])
                facts = _written(session, rows, given["target"] / "outcome" / f"unit={ids[0]}", given["kind"])
                if all(row["state"] in DONE for row in rows):
                    state.note(one, **facts)
                else:
                    unfinished[one] = facts
        return _tell(job, state, unfinished, given["target"])


def _mending(
    session: "SparkSession", cluster: Cluster, plan: dict[str, Any], into: tuple[Path, str], given: dict[str, Any]
) -> Callable[[list[int]], list[dict[str, Any]]]:
    """Return a function that has tasks repair the ledgers of a unit, and returns the outcome of each."""
    tasks = given["tasks"]
    settings = {**PACED, **cluster.settings, "replicationRateByBytes": str(-(-given["rate"] // tasks) or -1)}
    if given["findings"]:
        rewrite = partial(rewrite_ledgers, uri=cluster.uri, given=settings, replace=given["replace"])
        return lambda ids: _runs(session, into, ids).repartition(tasks).mapPartitions(rewrite).collect()
    lost = frozenset(row["bookie_id"] for row in plan["bookies"])
    restore = partial(restore_ledgers, uri=cluster.uri, given=settings, lost=lost, fence=given["fence_open"])
    return lambda ids: session.sparkContext.parallelize(ids, tasks).mapPartitions(restore).collect()


def _wrong_or_rate(ledgers: str, rate: str) -> int:
    """Check the options before anything is done; return the rate in bytes per second, 0 for no limit.

    Raises:
        ConfigurationError: an option is invalid.
    """
    from bookie.spark.options import Options  # noqa: PLC0415  # --help does not need it

    options = Options("rereplicate", {"ledgers": ledgers, "rate": rate})
    options.ranges("ledgers")
    return int(options.size("rate", 0, low=0))


def _planned(parts: "DataFrame", unit: int, into: tuple[Path, str] | None) -> dict[str, Any]:
    """Write the plan as a table; return the units of ledgers, and sums by bookie."""
    from pyspark.sql import functions as f  # noqa: PLC0415

    parts = parts.persist()
    try:
        if into:
            directory, kind = into
            parts.coalesce(1).write.mode("overwrite").format(kind).save(str(directory / PLAN))
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
    return {"units": units, "ledgers": len(ids), "bookies": bookies}


def _runs(session: "SparkSession", plan: tuple[Path, str], ledgers: list[int]) -> "RDD[Any]":
    """Return each of these ledgers with its runs, from the table of the plan."""
    from pyspark.sql import functions as f  # noqa: PLC0415

    directory, kind = plan
    rows = session.read.format(kind).load(str(directory / PLAN)).where(f.col("ledger_id").isin(ledgers))
    runs = f.collect_list(f.struct("bookie_id", "first_entry", "last_entry", "finding"))
    return rows.groupBy("ledger_id").agg(runs).rdd


def _lost(session: "SparkSession", cluster: Cluster, named: tuple[str, ...], ledgers: str) -> "DataFrame":
    """Return the segments on lost bookies.

    Raises:
        IllegalOperation: a bookie that is named as lost is writable.
    """
    from pyspark.sql import functions as f  # noqa: PLC0415

    members = session.read.format("bookkeeper-bookies").options(**cluster.options()).load().collect()
    writable = {row["bookie_id"] for row in members if row["mode"] == "writable"}
    if taking := sorted(writable.intersection(named)):
        raise IllegalOperation(f"bookie {', '.join(taking)} is writable: stop it or make it read-only first")
    registered = [row["bookie_id"] for row in members if row["mode"] != "down"]
    chosen = f.col("bookie_id").isin(*named) if named else ~f.col("bookie_id").isin(*registered)
    return _parts(session, cluster, ledgers).where(chosen)


def _parts(session: "SparkSession", cluster: Cluster, ledgers: str) -> "DataFrame":
    """Return a row for each bookie of each segment, with the average entries and bytes there; null if the segment is
    open.
    """
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
    """Write the outcomes of a unit as a table; return their sums."""
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
    outcomes = ", ".join(f"{count} {name}" for name, count in sorted(states.items()))
    text = page(
        "Re-replication",
        {
            "Segments by lost bookie": bar_plot(held, "segments"),
            "Segments taken over by": bar_plot(
                {one: {"segments": float(taken[one])} for one in sorted(taken)}, "segments"
            ),
        },
        plan["bookies"],
        [
            f"{counted(plan['ledgers'], 'ledger')}: {outcomes}.",
            f"copied: {counted(sums['entries'], 'entry')} with {counted(sums['bytes'], 'byte')}.",
        ],
    )
    write_file(target / "report.html", text.encode())
    counts = {name: states[name] for name in (*DONE, *NOT_DONE)}
    bookies = [row["bookie_id"] for row in plan["bookies"]]
    extra = {"remedies": plan["remedies"]} if plan["remedies"] else {}
    return job.end(left, called="left", well=not left, lost=bookies, ledgers=plan["ledgers"], **counts, **sums, **extra)
