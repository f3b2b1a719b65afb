"""What an audit found, as work: runs of entries that bookies lack, or hold damaged. Driver."""

from pathlib import Path
from typing import TYPE_CHECKING

from bookie.errors import IllegalOperation

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["parts_found"]

MENDED = ("MISSING", "DIGEST")
"""What writing an entry again puts right. Another length is for people to judge; who does not answer may be lost."""
KINDS = {".parquet": "parquet", ".json": "json"}


def parts_found(session: "SparkSession", audit: Path, ledgers: str) -> "DataFrame":
    """A row for each run of entries of a ledger on a bookie, from the table that `bkpipe audit --to` wrote.

    IllegalOperation: there is no such table.
    """
    from pyspark.sql import Window  # noqa: PLC0415
    from pyspark.sql import functions as f  # noqa: PLC0415

    from bookie.spark.options import Options  # noqa: PLC0415
    from bookie.spark.schemas import REPLICAS  # noqa: PLC0415

    table = audit / "findings"
    kinds = {KINDS[file.suffix] for file in table.glob("unit=*/*") if file.suffix in KINDS}
    if len(kinds) != 1:
        raise IllegalOperation(f"{audit} has no table findings/: name what bkpipe audit was given with --to")
    found = session.read.schema(REPLICAS.spark()).format(kinds.pop()).load(str(table))
    found = found.where(f.col("status").isin(*MENDED)).select("ledger_id", "bookie_id", "entry_id").distinct()
    ranges = Options("rereplicate", {"ledgers": ledgers}).ranges("ledgers")
    if ranges is not None:
        asked_for = [f.col("ledger_id").between(first, last) for first, last in ranges]
        found = found.where(f.greatest(*asked_for) if len(asked_for) > 1 else asked_for[0])
    place = f.row_number().over(Window.partitionBy("ledger_id", "bookie_id").orderBy("entry_id"))
    return (
        found.withColumn("run", f.col("entry_id") - place)
        .groupBy("ledger_id", "bookie_id", "run")
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
        )
    )
