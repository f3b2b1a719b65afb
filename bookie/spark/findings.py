"""What an audit found, and what puts it right: runs of entries to write again, ledgers to look at again. Driver."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from bookie.errors import IllegalOperation

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from bookie.spark.options import Ranges

__all__ = ["counts_left", "FINDINGS", "ledgers_unread", "parts_found", "remedies"]

REWRITTEN = ("MISSING", "DIGEST", "LENGTH")
"""What writing an entry again puts right."""
LEFT = ("EXTRA",)
"""What does no harm: readers end in front of it, or never ask its bookie for it."""
UNREAD = ("ERROR", "TIMEOUT")
"""What says nothing about the entry: its bookie may only have been away."""
FINDINGS = (*REWRITTEN, *LEFT, *UNREAD)
KINDS = {".parquet": "parquet", ".json": "json"}


def remedies(counts: Mapping[str, int], audit: Path) -> list[str]:
    """A sentence for each kind of finding that there is, by how many of each status: what to do about it."""

    def those(statuses: tuple[str, ...]) -> tuple[int, str]:
        there = [one for one in statuses if counts.get(one)]
        return sum(counts[one] for one in there), " ".join(there)

    told = []
    number, names = those(REWRITTEN)
    if number:
        told.append(f"{number} {names}: bkpipe rereplicate --findings {audit} writes them again from good replicas")
    number, names = those(LEFT)
    if number:
        told.append(
            f"{number} {names}: nothing to do: no reader gets them, and they go when their ledger is deleted or their"
            " bookie is replaced in it"
        )
    number, names = those(UNREAD)
    if number:
        told.append(
            f"{number} {names}: no sign of loss: bkpipe audit --again {audit} looks at their ledgers again when their"
            " bookies answer; of bookies that stay away bkpipe rereplicate copies everything"
        )
    return told


def parts_found(session: "SparkSession", audit: Path, ledgers: str) -> "DataFrame":
    """A row for each run of entries of a ledger on a bookie that are to be written again.

    `audit`: what `bkpipe audit` was given with --to. IllegalOperation: it has no table.
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
    """How many findings of each status there are that `parts_found` leaves alone."""
    from pyspark.sql import functions as f  # noqa: PLC0415

    found = _findings(session, audit, ledgers).where(~f.col("status").isin(*REWRITTEN))
    return {row["status"]: row["count"] for row in found.groupBy("status").count().orderBy("status").collect()}


def ledgers_unread(audit: Path, ranges: "Ranges | None") -> "Ranges":
    """The ledgers out of `ranges` of which the audit could not read something, as ranges. IllegalOperation, as above.

    Without Spark: a dry run starts none.
    """
    import pyarrow.dataset as ds  # noqa: PLC0415  # help loads nothing of it

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
    """All rows about `ledgers`."""
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
    """The table findings/ and how it is written. IllegalOperation: there is none."""
    table = audit / "findings"
    kinds = {KINDS[file.suffix] for file in table.glob("unit=*/*") if file.suffix in KINDS}
    if len(kinds) != 1:
        raise IllegalOperation(f"{audit} has no table findings/: name what bkpipe audit was given with --to")
    return table, kinds.pop()
