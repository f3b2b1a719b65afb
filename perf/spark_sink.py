"""How fast Spark on local[2] writes rows of 1 KiB into a log: from Parquet, from memory, beside a sink that drops them.

    python -m perf.spark_sink [ROWS [ROUNDS]]

One bookie with its defaults but the memory of `LocalCluster`: journal on disk and synced before each acknowledgement.
Ensemble, quorums 1; CRC32C; two tasks, so two ledgers. Both sinks in turn, ROUNDS pairs; `times_drop` is the median of
how much longer ours took within a pair. Bookie, Spark and its Python workers share the machine.
"""

import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceArrowWriter, WriterCommitMessage

from bookie.client import BookKeeper
from bookie.local import LocalCluster

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
    """Takes every batch and forgets it: the most that a Python sink can be given."""

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        """Count, so that it is all read."""
        sum(batch.num_rows for batch in iterator)
        return WriterCommitMessage()


class Dropping(DataSource):
    """Format `drop`, of this program only."""

    @classmethod
    def name(cls) -> str:
        """See above."""
        return "drop"

    def writer(self, schema: Any, overwrite: bool) -> DataSourceArrowWriter:  # noqa: ARG002, FBT001  # Spark's
        """Of a job."""
        return Drop()


def seconds(run: Callable[[], None]) -> float:
    """Of one run."""
    begin = time.perf_counter()
    run()
    return time.perf_counter() - begin


def compared(rounds: int, plain: Callable[[], None], ours: Callable[[], None]) -> tuple[float, float, float]:
    """Medians of both, in turn after one each that does not count, and of the ratio within a pair."""
    plain()
    ours()
    pairs = [(seconds(plain), seconds(ours)) for _ in range(rounds)]
    return (
        statistics.median(one for one, _ in pairs),
        statistics.median(other for _, other in pairs),
        statistics.median(other / one for one, other in pairs),
    )


def main(rows: int = 500_000, rounds: int = 3) -> None:
    """Print one JSON line a source of rows."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
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
            writer.options(log="perf", ensembleSize=1).mode("overwrite").save()

        for name, frame in frames.items():
            dropped, written, times = compared(
                rounds,
                frame.write.format("drop").mode("append").save,
                partial(sink, frame),
            )
            figures = {"from": name, "rows": rows, "drop_rows_per_s": round(rows / dropped)}
            figures |= {"rows_per_s": round(rows / written), "times_drop": round(times, 2)}
            print(json.dumps(figures), flush=True)
        ledgers = bk.logs.get("perf").value.ledgers
        assert sum(bk.ledger_metadata(one).last_entry + 1 for one in ledgers) == rows
    spark.stop()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
