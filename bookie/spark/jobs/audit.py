"""`bkpipe audit`: compares what each bookie has of each entry that it should store with the other replicas."""

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bookie.durable import write_file
from bookie.plural import counted
from bookie.spark.findings import FINDINGS, ledgers_unread, remedies
from bookie.spark.job import Cluster, Job, with_cluster, with_job, with_spark
from bookie.spark.job_options import format_option, ledgers_option, target_option, unit_option
from bookie.spark.planning import clipped, ledger_units, planned, units_done
from bookie.spark.plots import bar_plot, page
from bookie.spark.sessions import Sessions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from bookie.spark.options import Ranges


@click.command()
@with_cluster
@ledgers_option()
@click.option(
    "--sample",
    type=click.Choice(("first_last", "percent", "all")),
    default="first_last",
    show_default=True,
    help="Which entries are read and verified. The presence of entries is checked for all.",
)
@click.option("--percent", type=click.IntRange(1, 100), default=10, show_default=True,
              help="Share of the entries to read, with --sample percent.")  # fmt: skip
@click.option(
    "--rate",
    default="0",
    metavar="BYTES",
    help="Most bytes to read from each bookie per second, such as 20m.  [default: no limit]",
)
@unit_option(2000)
@click.option("--tasks", type=click.IntRange(1), default=8, show_default=True, help="Spark tasks per unit.")
@click.option(
    "--ignore", multiple=True, type=click.Choice(FINDINGS), help="Findings to ignore in the exit code. May be repeated."
)
@click.option(
    "--again",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    help="Directory of an earlier audit (its --to): audit only ledgers of which it could not read something.",
)
@target_option("Directory to write the table findings/ and report.html to.", required=True)
@format_option("the table of findings")
@with_spark
@with_job
def command(  # one parameter for each option
    job: Job,
    cluster: Cluster,
    spark: Sessions,
    ledgers: str,
    target: Path,
    unit: int,
    ignore: tuple[str, ...],
    kind: str,
    **given: Any,
) -> int:
    """Compare all replicas of all ledgers, and list what is missing or differs.

    Each bookie of a ledger is asked which entries it has: what it lacks is MISSING, and what it should not have is
    EXTRA, such as entries left behind when a writer replaced the bookie. Entries of the sample are read from each
    bookie of their write set: DIGEST is damage, LENGTH a length field that differs from the other replicas or the
    metadata, and ERROR and TIMEOUT are entries that could not be read. Nothing is fenced or repaired; `remedies` in
    the summary says what to do about each kind. An entry that a bookie failed to return is not a sign of loss: --again
    audits only these ledgers once more.

    The exit code is 3 when there are findings.

    \b
    EXAMPLES
      bkpipe audit -u grpc://h1:3182 --to build/audit
      bkpipe audit --sample all --rate 20m --to /audits/today --state /audits/today/state
      bkpipe audit --again /audits/today --to /audits/again --state /audits/again/state
    """
    options = {"uri": cluster.uri, "ledgers": ledgers, "unit": unit, "to": str(target), "kind": kind, **given}
    ranges = _chosen(ledgers, given["rate"])
    if given["again"] is not None:
        ranges = ledgers_unread(given["again"], ranges)
    with job.open(**options) as state:
        settings = dict(cluster.settings)
        if job.dry_run:
            units = ledger_units(cluster.uri, settings, ranges, unit)
            return job.end(({"ledgers": one, "done": one in state.done} for one in units), called="units")
        units = planned(state, lambda: ledger_units(cluster.uri, settings, ranges, unit))
        left = [one for one in units if one not in state.done]
        if left:
            with spark.open(job.name) as session:
                for one in job.left(units, "ledgers"):
                    state.note(
                        one, **_audit(session, cluster, clipped(one, ranges), one, (target / "findings", kind), given)
                    )
        return _tell(job, dict(units_done(state)), target, ignore)


def _chosen(text: str, rate: str) -> "Ranges | None":
    """Parse the ranges of ledgers and check the rate, before anything is done.

    Raises:
        ConfigurationError: an option is invalid.
    """
    from bookie.spark.options import Options  # noqa: PLC0415  # --help does not need it

    options = Options("audit", {"ledgers": text, "rate": rate})
    options.size("rate", 0, low=0)
    return options.ranges("ledgers")


def _audit(
    session: "SparkSession",
    cluster: Cluster,
    ledgers: str,
    unit: str,
    into: tuple[Path, str],
    given: dict[str, Any],
) -> dict[str, Any]:
    """Audit some ledgers, write their findings, and return the number of rows by bookie and status."""
    options = {
        "ledgers": ledgers,
        "sample": given["sample"],
        "samplePercent": str(given["percent"]),
        "partitions": str(given["tasks"]),
        "maxBytesPerSecondPerBookie": given["rate"] if given["rate"] != "0" else "",
    }
    rows = session.read.format("bookkeeper-replicas").options(**cluster.options(**options)).load().persist()
    try:
        counts = rows.groupBy("bookie_id", "status").count().collect()
        directory, kind = into
        found = rows.where("status <> 'OK'").coalesce(1)
        found.write.mode("overwrite").format(kind).save(str(directory / f"unit={unit}"))
    finally:
        rows.unpersist()
    return {"counts": [[row["bookie_id"], row["status"], row["count"]] for row in counts]}


def _tell(job: Job, done: dict[str, dict[str, Any]], target: Path, ignore: tuple[str, ...]) -> int:
    sums: Counter[tuple[str, str]] = Counter()
    for facts in done.values():
        for bookie, status, count in facts["counts"]:
            sums[bookie, status] += count
    bookies = sorted({bookie for bookie, _ in sums})
    rows = [{"bookie": one, **{status: sums[one, status] for status in ("OK", *FINDINGS)}} for one in bookies]
    findings = sum(count for (_, status), count in sums.items() if status != "OK" and status not in ignore)
    bars = {one: {status: float(sums[one, status]) for status in FINDINGS if sums[one, status]} for one in bookies}
    counts = Counter[str]()
    for (_, status), count in sums.items():
        counts[status] += count
    advice = remedies(counts, target)
    text = page(
        "Replicas of a cluster",
        {"Findings by bookie": bar_plot(bars, "replicas")},
        rows,
        [
            f"{counted(sum(sums.values()), 'replica')} checked; {counted(findings, 'finding')}.",
            "The table findings/ lists them.",
            *advice,
        ],
    )
    write_file(target / "report.html", text.encode())
    facts = {"replicas": sum(sums.values()), "findings": findings, "remedies": advice}
    return job.end(rows, called="bookies", well=not findings, **facts)
