"""How fast Spark on local[2] writes rows of 1 KiB into a log: from Parquet, from memory, beside a sink that drops them.

    python -m perf.spark_sink [ROWS [ROUNDS]]

One bookie with its defaults but the memory of `LocalCluster`: journal on disk and synced before each acknowledgement.
Ensemble, quorums 1; CRC32C; two tasks, so two ledgers. Each line is the median of ROUNDS. Bookie, Spark and its Python
workers share the machine.
"""

import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
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


def median(rounds: int, run: Callable[[], None]) -> float:
    """Of their times, after one that does not count."""
    run()
    times = []
    for _ in range(rounds):
        begin = time.perf_counter()
        run()
        times.append(time.perf_counter() - begin)
    return statistics.median(times)


def main(rows: int = 300_000, rounds: int = 3) -> None:
    """Print one JSON line a measurement."""
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
            for kind, run in (
                ("drop", lambda frame=frame: frame.write.format("drop").mode("append").save()),
                ("bookkeeper", lambda frame=frame: sink(frame)),
            ):
                seconds = median(rounds, run)
                figures = {"from": name, "sink": kind, "rows": rows, "s": round(seconds, 3)}
                print(json.dumps({**figures, "rows_per_s": round(rows / seconds)}), flush=True)
        ledgers = bk.logs.get("perf").value.ledgers
        assert sum(bk.ledger_metadata(one).last_entry + 1 for one in ledgers) == rows
    spark.stop()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
