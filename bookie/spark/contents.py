"""The entries of ledgers in two clusters beside each other, by checksums of stretches. Driver; tasks read and sum.

What is kept of a stretch is its count and one 64-bit number, so memory does not grow with what is read.
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
    """That share of the ledgers, the same in each call."""
    return [ledger for ledger in ledgers if zlib.crc32(b"%d" % ledger) % 100 < percent]


def common_ends(here: Mapping[str, str], there: Mapping[str, str], ledgers: Sequence[int]) -> dict[int, int]:
    """How many entries of each ledger both sides confirm; 0 of one that is deleted. Nothing is fenced. ReadError.

    `here` and `there`: options of the source.
    """
    from bookie.spark.clients import close_all  # noqa: PLC0415  # help loads no client
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
    """A row a ledger: entries here, and `first` and `last` entry of the first stretch that differs, or None.

    `here` and `there`: options of the source; `ends`: in front of which entry of a ledger to stop, where that is not
    its end. Entries that no replica gives differ from those that one does.
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
    """As administrators do: digests are verified, no password is asked for."""
    more = {"ledgers": ",".join(map(str, ledgers)), "verifyDigest": "false", "failOnDataLoss": "false"}
    return {**{name: text for name, text in options.items() if name != "password"}, **more}


def _stretches(session: "SparkSession", options: Mapping[str, str]) -> "DataFrame":
    from pyspark.sql import functions as f  # noqa: PLC0415

    entries = session.read.format("bookkeeper").options(**options).load()
    stretch = f.shiftright("entry_id", STRETCH_ENTRIES.bit_length() - 1).alias("stretch")
    checksum = f.bit_xor(f.xxhash64("entry_id", "value")).alias("sum")
    return entries.groupBy("ledger_id", stretch).agg(f.count("*").alias("entries"), checksum)
