"""Compares the entries of ledgers in two clusters by checksums. Called on the driver; tasks read and checksum.

Each stretch of 4096 entries is reduced to its count and one 64-bit checksum, so memory does not grow with the amount
of data.
"""

import json
import zlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["common_ends", "compared_contents", "sampled"]

STRETCH_ENTRIES = 1 << 12


def sampled(ledgers: Sequence[int], percent: int) -> list[int]:
    """Return about `percent` percent of the ledgers; the choice is the same in each call."""
    return [ledger for ledger in ledgers if zlib.crc32(b"%d" % ledger) % 100 < percent]


def common_ends(here: Mapping[str, str], there: Mapping[str, str], ledgers: Sequence[int]) -> dict[int, int]:
    """Return how many entries of each ledger both clusters have confirmed; 0 if either has deleted it. No ledger is
    fenced.

    Args:
        here: options of the source for the first cluster.
        there: options of the source for the second cluster.
        ledgers: the ids of the ledgers.

    Raises:
        ReadError: the LAC of a ledger cannot be read.
    """
    from bookie.spark.clients import close_all  # noqa: PLC0415  # --help does not need the client
    from bookie.spark.source.ledgers import Ledgers  # noqa: PLC0415
    from bookie.spark.source.settings import SourceSettings  # noqa: PLC0415

    if not ledgers:
        return {}
    try:
        a, b = (Ledgers(SourceSettings.of(_reading(options, ledgers))).ends(ledgers) for options in (here, there))
    finally:
        close_all()
    return {one: min(a[one].end, b[one].end) if one in a and one in b else 0 for one in ledgers}


def compared_contents(
    session: "SparkSession",
    here: Mapping[str, str],
    there: Mapping[str, str],
    ledgers: Sequence[int],
    ends: Mapping[int, int],
) -> list[dict[str, Any]]:
    """Compare the entries of ledgers in two clusters.

    Args:
        session: the Spark session.
        here: options of the source for the first cluster.
        there: options of the source for the second cluster.
        ledgers: the ids of the ledgers.
        ends: by ledger, the entry id before which to stop; a ledger that is not named is read to its end.

    Returns:
        A row for each ledger: `entries` in the first cluster, and the `first` and `last` entry of the first stretch
            that differs, or None. An entry that no replica returns differs from one that was read.
    """
    from pyspark.sql import functions as f  # noqa: PLC0415

    upto = {"endingOffsets": json.dumps(dict(ends))} if ends else {}
    a, b = (
        _stretches(session, {**_reading(options, ledgers), **upto}).alias(name)
        for name, options in (("a", here), ("b", there))
    )
    same = f.col("a.entries").eqNullSafe(f.col("b.entries")) & f.col("a.sum").eqNullSafe(f.col("b.sum"))
    rows = (
        a.join(b, ["ledger_id", "stretch"], "full_outer")
        .groupBy("ledger_id")
        .agg(
            f.coalesce(f.sum("a.entries"), f.lit(0)).alias("entries"),
            (f.min(f.when(~same, f.col("stretch"))) * STRETCH_ENTRIES).alias("first"),
        )
        .withColumn("last", f.col("first") + STRETCH_ENTRIES - 1)
    )
    return [row.asDict() for row in rows.orderBy("ledger_id").collect()]


def _reading(options: Mapping[str, str], ledgers: Sequence[int]) -> dict[str, str]:
    """Return the options with which administrators read: digests are verified, but no password is needed."""
    more = {"ledgers": ",".join(map(str, ledgers)), "verifyDigest": "false", "failOnDataLoss": "false"}
    return {**{name: text for name, text in options.items() if name != "password"}, **more}


def _stretches(session: "SparkSession", options: Mapping[str, str]) -> "DataFrame":
    from pyspark.sql import functions as f  # noqa: PLC0415

    entries = session.read.format("bookkeeper").options(**options).load()
    stretch = f.shiftright("entry_id", STRETCH_ENTRIES.bit_length() - 1).alias("stretch")
    checksum = f.bit_xor(f.xxhash64("entry_id", "value")).alias("sum")
    return entries.groupBy("ledger_id", stretch).agg(f.count("*").alias("entries"), checksum)
