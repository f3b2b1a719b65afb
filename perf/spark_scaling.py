"""The cost of a query, a task and a byte when Spark reads ledgers, with one core and with two: figures for planning.

    python -m perf.spark_scaling [MIB [ROUNDS]]

Entries of 1 KiB in a bookie's write cache are counted over all columns. The same bytes are read in few tasks and in
many, and one entry alone; the differences are the costs of a task, of a byte and of a query. Each number of cores is a
process of its own. Medians; elapsed times include other work on the machine, CPU seconds do not.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from bookie.local import LocalCluster
from perf.cpu import since_s, spent_s
from perf.spark_source import LEDGERS, ROWS, SIZE, counted, fill

FEW, MANY = LEDGERS, 64


class Cost(NamedTuple):
    """The cost of a query: elapsed seconds, and CPU seconds of Spark's processes."""

    clock: float
    cpu: float


def cost(rounds: int, frame: Any, rows: int) -> Cost:
    """Return medians, after one warm-up run."""
    run = partial(counted, frame, rows)
    run()
    found = []
    for _ in range(rounds):
        spent, begin = spent_s(), time.perf_counter()
        run()
        found.append(Cost(time.perf_counter() - begin, sum(since_s(spent).values())))
    return Cost(statistics.median(one.clock for one in found), statistics.median(one.cpu for one in found))


def measured(cores: int, uri: str, ledgers: str, rows: int, rounds: int) -> dict[str, float]:
    """Return the times of the three queries, and the costs that follow from them."""
    from pyspark.sql import SparkSession  # noqa: PLC0415  # one session per process

    from bookie.spark import register  # noqa: PLC0415

    builder: Any = SparkSession.builder.master(f"local[{cores}]")
    settings = {"spark.driver.memory": "1g", "spark.ui.enabled": "false", "spark.driver.host": "127.0.0.1"}
    settings |= {"spark.ui.showConsoleProgress": "false", "spark.python.unix.domain.socket.enabled": "true"}
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    register(spark)
    source = spark.read.format("bookkeeper").option("metadataServiceUri", uri)
    one = ledgers.partition(",")[0]
    tiny = source.option("ledgers", one).option("endingOffsets", json.dumps({one: 1})).load()
    source = source.options(ledgers=ledgers, endingOffsets="latest", maxPartitionBytes="1g")
    alone = cost(rounds, tiny, 1)
    few = cost(rounds, source.option("minPartitions", str(FEW)).load(), rows)
    many = cost(rounds, source.option("minPartitions", str(MANY)).load(), rows)
    spark.stop()
    gib = rows * SIZE / 2**30
    row: dict[str, float] = {"cores": cores, "gib": gib}
    for name, share, at in (("clock", cores, 0), ("cpu", 1, 1)):
        task = (many[at] - few[at]) * share / (MANY - FEW)
        row[f"query_{name}_s"] = alone[at]
        row[f"task_{name}_s"] = task
        row[f"gib_{name}_s"] = ((few[at] - alone[at]) * share - (FEW - 1) * task) / gib
    return row


def main() -> None:
    """Print a JSON line for each number of cores."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    if sys.argv[1:2] == ["measure"]:
        cores, uri, ledgers, count, times = sys.argv[2:]
        row = measured(int(cores), uri, ledgers, int(count), int(times))
        print(json.dumps({key: round(value, 4) for key, value in row.items()}), flush=True)
        return
    mib = int(sys.argv[1]) if len(sys.argv) > 1 else 512
    rounds = sys.argv[2] if len(sys.argv) > 2 else "5"
    rows = (mib << 20) // SIZE // ROWS // LEDGERS * ROWS * LEDGERS
    caches: dict[str, Any] = {"dbStorage_writeCacheMaxSizeMb": 3 * mib, "serverMaxOutputMemorySizeMb": 64}
    with tempfile.TemporaryDirectory() as here, LocalCluster(1, directory=Path(here) / "cluster", **caches) as cluster:
        ledgers = ",".join(map(str, fill(cluster.uri, rows)))
        for cores in ("1", "2"):
            words = [
                sys.executable,
                "-m",
                "perf.spark_scaling",
                "measure",
                cores,
                cluster.uri,
                ledgers,
                str(rows),
                rounds,
            ]
            subprocess.run(words, check=True)


if __name__ == "__main__":
    main()
