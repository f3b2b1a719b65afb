"""What an audit found and how to repair it: runs of entries to write again, ledgers to audit again. Runs on the
driver.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from bookie.errors import IllegalOperation

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from bookie.spark.options import Ranges

__all__ = ["counts_left", "FINDINGS", "ledgers_unread", "parts_found", "remedies"]

REWRITTEN = ("MISSING", "DIGEST", "LENGTH")
"""Findings that are repaired by writing the entry again."""
LEFT = ("EXTRA",)
"""Findings that do no harm: readers stop before the entry, or never ask its bookie for it."""
UNREAD = ("ERROR", "TIMEOUT")
"""Findings that say nothing about the entry: its bookie may only have been unreachable."""
FINDINGS = (*REWRITTEN, *LEFT, *UNREAD)
KINDS = {".parquet": "parquet", ".json": "json"}


def remedies(counts: Mapping[str, int], audit: Path) -> list[str]:
    """Return a sentence for each kind of finding, which says what to do about it.

    Args:
        counts: the number of findings by status.
        audit: the directory that `bkpipe audit` was given with --to.
    """

    def those(statuses: tuple[str, ...]) -> tuple[int, str]:
        there = [one for one in statuses if counts.get(one)]
        return sum(counts[one] for one in there), " ".join(there)

    remedies = []
    number, names = those(REWRITTEN)
    if number:
        remedies.append(f"{number} {names}: bkpipe rereplicate --findings {audit} rewrites them from intact replicas")
    number, names = those(LEFT)
    if number:
        remedies.append(
            f"{number} {names}: nothing to do: readers never see them, and they disappear when their ledger is deleted"
            " or their bookie is replaced in it"
        )
    number, names = those(UNREAD)
    if number:
        remedies.append(
            f"{number} {names}: not a sign of data loss: bkpipe audit --again {audit} audits their ledgers again once"
            " their bookies answer; if bookies do not come back, bkpipe rereplicate copies all their ledgers"
        )
    return remedies


def parts_found(session: "SparkSession", audit: Path, ledgers: str) -> "DataFrame":
    """Return a row for each run of consecutive entries of a ledger that must be written again on a bookie.

    Args:
        session: the Spark session.
        audit: the directory that `bkpipe audit` was given with --to.
        ledgers: ids and ranges of ids to restrict the result to; "": all.

    Raises:
        IllegalOperation: the directory has no table of findings.
    """
    from pyspark.sql import Window  # noqa: PLC0415
    from pyspark.sql import functions as f  # noqa: PLC0415

    found = _findings(session, audit, ledgers)
    found = found.where(f.col("status").isin(*REWRITTEN)).select("ledger_id", "bookie_id", "entry_id", "status")
    one_run = "ledger_id", "bookie_id", "status"
    place = f.row_number().over(Window.partitionBy(*one_run).orderBy("entry_id"))
    return (
        found.distinct()
        .withColumn("run", f.col("entry_id") - place)
        .groupBy(*one_run, "run")
        .agg(
            f.min("entry_id").alias("first_entry"), f.max("entry_id").alias("last_entry"), f.count("*").alias("entries")
        )
        .select(
            "ledger_id",
            f.lit(None).cast("string").alias("state"),
            "first_entry",
            "last_entry",
            "bookie_id",
            "entries",
            f.lit(None).cast("bigint").alias("bytes"),
            f.col("status").alias("finding"),
        )
    )


def counts_left(session: "SparkSession", audit: Path, ledgers: str) -> dict[str, int]:
    """Return the number of findings by status that `parts_found` leaves out."""
    from pyspark.sql import functions as f  # noqa: PLC0415

    found = _findings(session, audit, ledgers).where(~f.col("status").isin(*REWRITTEN))
    return {row["status"]: row["count"] for row in found.groupBy("status").count().orderBy("status").collect()}


def ledgers_unread(audit: Path, ranges: "Ranges | None") -> "Ranges":
    """Return the ledgers of which the audit could not read something, as ranges of ids, restricted to `ranges`.

    It works without Spark, because a dry run does not start a session.

    Raises:
        IllegalOperation: the directory has no table of findings.
    """
    import pyarrow.dataset as ds  # noqa: PLC0415  # --help does not need it

    from bookie.spark.options import within  # noqa: PLC0415
    from bookie.spark.schemas import REPLICAS  # noqa: PLC0415

    table, kind = _table(audit)
    files = [str(file) for file in table.glob(f"unit=*/*.{kind}")]
    unread = ds.field("status").isin(list(UNREAD))
    scan = ds.dataset(files, format=kind, schema=REPLICAS.arrow()).scanner(columns=["ledger_id"], filter=unread)
    ids: set[int] = set()
    for batch in scan.to_batches():
        ids.update(batch.column(0).unique().to_pylist())
    found: list[tuple[int, int]] = []
    for ledger in sorted(one for one in ids if within(ranges, one)):
        if found and found[-1][1] == ledger - 1:
            found[-1] = found[-1][0], ledger
        else:
            found.append((ledger, ledger))
    return tuple(found)


def _findings(session: "SparkSession", audit: Path, ledgers: str) -> "DataFrame":
    """Return all findings about `ledgers`."""
    from pyspark.sql import functions as f  # noqa: PLC0415

    from bookie.spark.options import Options  # noqa: PLC0415
    from bookie.spark.schemas import REPLICAS  # noqa: PLC0415

    table, kind = _table(audit)
    found = session.read.schema(REPLICAS.spark()).format(kind).load(str(table))
    ranges = Options("rereplicate", {"ledgers": ledgers}).ranges("ledgers")
    if ranges is None:
        return found
    asked_for = [f.col("ledger_id").between(first, last) for first, last in ranges]
    return found.where(f.greatest(*asked_for) if len(asked_for) > 1 else asked_for[0])


def _table(audit: Path) -> tuple[Path, str]:
    """Return the directory `findings` and its file format.

    Raises:
        IllegalOperation: there is no such table.
    """
    table = audit / "findings"
    kinds = {KINDS[file.suffix] for file in table.glob("unit=*/*") if file.suffix in KINDS}
    if len(kinds) != 1:
        raise IllegalOperation(
            f"{audit} has no table findings/: name the directory that bkpipe audit was given with --to"
        )
    return table, kinds.pop()
