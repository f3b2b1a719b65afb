"""The rate at which Spark on local[2] reads from a warm bookie, compared with a synthetic Arrow source in the same
session.

    python -m perf.spark_source [MIB [ROUNDS [parquet]]]

Entries of 1 KiB. Each line is the median of ROUNDS, in which all take their turns: a count over all columns, and on
request writing to Parquet. "event_loop" is our source without direct connections (maxDirectConnectionsPerBookie=0),
"single" with batchReadEnabled=false: one request per entry, as Java's `readEntries` does, with 8 MiB in flight. Bookie,
Spark and its Python workers share the machine.
"""

import gc
import json
import os
import resource
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from bookie.client import BookKeeper
from bookie.local import LocalCluster
from bookie.spark.schemas import BOOKKEEPER
from perf.cpu import since_s, spent_s

SIZE = 1024
ROWS = 1024
LEDGERS = 4


class SyntheticReader(DataSourceReader):  # type: ignore[misc]  # Spark is not looked at
    """Yields one record batch again and again: the highest rate that a Python source can reach."""

    def __init__(self, rows: int) -> None:
        self._rows = rows

    def partitions(self) -> list[InputPartition]:
        """Return as many partitions as there are ledgers."""
        return [InputPartition(self._rows // LEDGERS)] * LEDGERS

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Yield batches over existing buffers."""
        import numpy as np  # noqa: PLC0415
        import pyarrow as pa  # noqa: PLC0415

        values = np.random.default_rng(1).bytes(ROWS * SIZE)
        edges = np.arange(0, ROWS * SIZE + 1, SIZE, dtype=np.int32)
        numbers = pa.array(np.arange(ROWS, dtype=np.int64))
        arrays = {
            "value": pa.Array.from_buffers(pa.binary(), ROWS, [None, pa.py_buffer(edges), pa.py_buffer(values)]),
            "entry_size": pa.array(np.full(ROWS, SIZE, dtype=np.int32)),
            "ledger_ctime": pa.nulls(ROWS, pa.timestamp("us", tz="UTC")),
        }
        schema = BOOKKEEPER.without("metadata").arrow()
        batch = pa.RecordBatch.from_arrays([arrays.get(name, numbers) for name in schema.names], schema=schema)
        for _ in range(partition.value // ROWS):
            yield batch


class Synthetic(DataSource):  # type: ignore[misc]  # nor here
    """A source with the columns of format `bookkeeper`."""

    @classmethod
    def name(cls) -> str:
        return "synthetic"

    def schema(self) -> Any:
        return BOOKKEEPER.without("metadata").spark()

    def reader(self, schema: Any) -> DataSourceReader:  # noqa: ARG002  # Spark hands it over
        return SyntheticReader(int(self.options["rows"]))


def session() -> Any:
    """Return a session with two cores, as a user would configure it."""
    builder = SparkSession.builder.master("local[2]")
    settings = {
        "spark.driver.memory": "1g",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.host": "127.0.0.1",
        "spark.python.unix.domain.socket.enabled": "true",
    }
    for key, value in settings.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def fill(uri: str, rows: int) -> list[int]:
    """Write ledgers with `rows` entries in total; return their ids."""
    ledgers = []
    block = os.urandom(SIZE)
    with BookKeeper(uri, useV2WireProtocol=True) as client:
        for _ in range(LEDGERS):
            with client.create_ledger(
                ensemble_size=1, write_quorum_size=1, ack_quorum_size=1, digest_type="CRC32C"
            ) as ledger:
                for _ in range(rows // LEDGERS):
                    ledger.append_async(block)
            ledgers.append(ledger.id)
    return ledgers


def in_turn(rounds: int, runs: Mapping[str, Callable[[], None]]) -> dict[str, list[tuple[float, dict[str, float]]]]:
    """Run each kind in turn, after one round that warms up: elapsed seconds, and CPU seconds by kind of process.

    In turn, because Java compiles its code while the first ones run, and others use the machine.
    """
    found: dict[str, list[tuple[float, dict[str, float]]]] = {kind: [] for kind in runs}
    for number in range(rounds + 1):
        for kind, run in runs.items():
            gc.collect()
            spent, begin = spent_s(), time.perf_counter()
            run()
            if number:
                found[kind].append((time.perf_counter() - begin, since_s(spent)))
    return found


def counted(frame: Any, rows: int) -> None:
    """Count the rows; the source delivers all columns, because Spark does not prune them."""
    assert frame.count() == rows


def to_parquet(frame: Any, out: str) -> None:
    """Write the rows to Parquet with Spark's default settings."""
    frame.write.mode("overwrite").parquet(out)


def main() -> None:
    """Measure and print; the last line is JSON."""
    mib = int(sys.argv[1]) if len(sys.argv) > 1 else 256
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 3
    rows = (mib << 20) // SIZE // ROWS // LEDGERS * ROWS * LEDGERS
    os.environ["PYSPARK_PYTHON"] = sys.executable
    begin = time.perf_counter()
    spark = session()
    figures: dict[str, float] = {"start_s": time.perf_counter() - begin}
    here = Path(tempfile.mkdtemp(prefix="spark-source-"))
    begin = time.perf_counter()
    spark.dataSource.register(Synthetic)
    counted(spark.read.format("synthetic").option("rows", rows).load(), rows)
    figures["first_query_s"] = time.perf_counter() - begin
    caches: dict[str, Any] = {"dbStorage_writeCacheMaxSizeMb": 3 * mib, "serverMaxOutputMemorySizeMb": 64}
    try:
        with LocalCluster(1, directory=here / "cluster", **caches) as cluster:
            ledgers = ",".join(map(str, fill(cluster.uri, rows)))
            ours = spark.read.format("bookkeeper").options(metadataServiceUri=cluster.uri, ledgers=ledgers)
            kinds = {
                "synthetic": spark.read.format("synthetic").option("rows", rows).load(),
                "bookkeeper": ours.load(),
                "event_loop": ours.option("bookkeeper.maxDirectConnectionsPerBookie", "0").load(),
                "bookkeeper_v2": ours.option("bookkeeper.maxDirectConnectionsPerBookie", "4")
                .option("bookkeeper.useV2WireProtocol", "true")
                .load(),
                "single": ours.option("bookkeeper.batchReadEnabled", "false").load(),
            }
            measured = in_turn(rounds, {kind: partial(counted, frame, rows) for kind, frame in kinds.items()})
            for kind, found in measured.items():
                seconds = statistics.median(took for took, _ in found)
                pairs = zip(measured["synthetic"], found, strict=True)
                figures[f"{kind}_count_GB_per_s"] = rows * SIZE / seconds / 1e9
                figures[f"{kind}_by_synthetic"] = statistics.median(one / took for (one, _), (took, _) in pairs)
                whose = sorted({name for _, cpu in found for name in cpu})
                cpu_s = {name: statistics.median(cpu.get(name, 0.0) for _, cpu in found) for name in whose}
                each = ", ".join(f"{name} {spent / mib * 1024:.2f}" for name, spent in cpu_s.items())
                print(f"{kind}: count of {mib} MiB in {seconds:.2f} s; CPU s a GiB: {each}", flush=True)
            for kind in ("synthetic", "bookkeeper") if "parquet" in sys.argv else ():
                ((seconds, _),) = in_turn(1, {kind: partial(to_parquet, kinds[kind], str(here / "out"))})[kind]
                figures[f"{kind}_parquet_rows_per_s"] = rows / seconds
                print(f"{kind}: {rows} rows to Parquet in {seconds:.2f} s", flush=True)
    finally:
        spark.stop()
        shutil.rmtree(here)
    figures["driver_rss_mib"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({key: round(value, 3) for key, value in figures.items()}))


if __name__ == "__main__":
    main()
