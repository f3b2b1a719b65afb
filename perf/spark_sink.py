"""The rate at which Spark on local[2] writes rows of 1 KiB into a log, from Parquet and from memory, compared with a
sink that drops them.

    python -m perf.spark_sink [ROWS [ROUNDS [OPTION=VALUE...]]]

One bookie with default settings except the memory of `LocalCluster`: the journal is on disk and synced before each
acknowledgement. Ensemble and quorums are 1; CRC32C; two tasks, so two ledgers. Both sinks run in turn, ROUNDS pairs;
`times_drop` is the median of the ratio of their times within a pair; `cpu_s` are medians of CPU seconds per million
rows. Bookie, Spark and its Python workers share the machine. Further arguments are options of the sink, such as
`bookkeeper.useV2WireProtocol=true`.
"""

import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceArrowWriter, WriterCommitMessage

from bookie.client import BookKeeper
from bookie.local import LocalCluster
from perf.cpu import since_s, spent_s

SIZE = 1024
SETTINGS = {
    "spark.driver.memory": "1g",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.driver.host": "127.0.0.1",
    "spark.python.unix.domain.socket.enabled": "true",
}


class Drop(DataSourceArrowWriter):
    """A writer that drops every batch: the highest rate that a Python sink can reach."""

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        """Count the rows, so that all of them are read."""
        sum(batch.num_rows for batch in iterator)
        return WriterCommitMessage()


class Dropping(DataSource):
    """The format `drop` of this program."""

    @classmethod
    def name(cls) -> str:
        return "drop"

    def writer(self, schema: Any, overwrite: bool) -> DataSourceArrowWriter:  # noqa: ARG002, FBT001  # Spark's
        return Drop()


class Run(NamedTuple):
    """The elapsed seconds of a run, and its CPU seconds by kind of process."""

    clock: float
    cpu: Mapping[str, float]


def timed(run: Callable[[], None]) -> Run:
    """Time one run."""
    spent, begin = spent_s(), time.perf_counter()
    run()
    clock = time.perf_counter() - begin
    return Run(clock, since_s(spent))


def compared(rounds: int, plain: Callable[[], None], ours: Callable[[], None], millions: float) -> dict[str, Any]:
    """Run both in turn, after one warm-up each; return their medians, and that of the ratio within a pair."""
    plain()
    ours()
    pairs = [(timed(plain), timed(ours)) for _ in range(rounds)]

    def rate(of: int) -> int:
        return round(millions * 1e6 / statistics.median(pair[of].clock for pair in pairs))

    def cpu_s(of: int) -> dict[str, float]:
        whose = sorted({name for pair in pairs for name in pair[of].cpu})
        return {one: round(statistics.median(p[of].cpu.get(one, 0.0) for p in pairs) / millions, 2) for one in whose}

    times = statistics.median(other.clock / one.clock for one, other in pairs)
    figures: dict[str, Any] = {"drop_rows_per_s": rate(0), "rows_per_s": rate(1), "times_drop": round(times, 2)}
    return {**figures, "drop_cpu_s": cpu_s(0), "cpu_s": cpu_s(1)}


def main(rows: int, rounds: int, *options: str) -> None:
    """Print one JSON line for each source of rows."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    given = dict(one.split("=", 1) for one in options)
    builder: Any = SparkSession.builder.master("local[2]")
    for key, value in SETTINGS.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    spark.dataSource.register(Dropping)
    with tempfile.TemporaryDirectory() as directory, LocalCluster(1) as cluster, BookKeeper(cluster.uri) as bk:
        made = spark.range(0, rows, 1, 2).selectExpr(f"CAST(rpad(CAST(id AS STRING), {SIZE}, 'x') AS BINARY) AS value")
        parquet = str(Path(directory) / "rows")
        made.write.parquet(parquet)
        frames = {"range": made, "parquet": spark.read.parquet(parquet)}

        def sink(frame: Any) -> None:
            writer = frame.write.format("bookkeeper").option("metadataServiceUri", cluster.uri)
            writer.options(log="perf", ensembleSize=1, **given).mode("overwrite").save()

        for name, frame in frames.items():
            drop = frame.write.format("drop").mode("append").save
            figures = compared(rounds, drop, partial(sink, frame), rows / 1e6)
            print(json.dumps({"from": name, "rows": rows, **figures}), flush=True)
        ledgers = bk.logs.get("perf").value.ledgers
        assert sum(bk.ledger_metadata(one).last_entry + 1 for one in ledgers) == rows
    spark.stop()


if __name__ == "__main__":
    words = sys.argv[1:]
    main(int(words[0]) if words else 500_000, int(words[1]) if len(words) > 1 else 3, *words[2:])
