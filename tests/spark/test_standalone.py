"""A standalone cluster of Spark on loopback, master and worker processes of their own, whose executor reads a log."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from bookie.local import LocalCluster
from tests.fixtures.ports import free_port
from tests.fixtures.spark_world import World

pytestmark = [
    pytest.mark.slow,
    pytest.mark.interop,
    pytest.mark.leaks("gRPC keeps its own threads and their descriptors as long as the process lives"),
]
pytest_plugins = ["bookie.local.fixtures"]

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """
import os, sys
from pyspark.sql import SparkSession
from bookie.spark import register
master, uri = sys.argv[1:]
spark = SparkSession.builder.master(master).config("spark.ui.enabled", "false").config(
    "spark.executor.memory", "512m").config("spark.driver.host", "127.0.0.1").getOrCreate()
register(spark)
log = spark.read.format("bookkeeper").option("metadataServiceUri", uri).option("log", "far").load()
print(*log.selectExpr("count(*)", "count(distinct ledger_id)", "sum(entry_size)").first())
executors = spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size() - 1
print(executors, spark.sparkContext.master)
spark.stop()
"""


@contextmanager
def process(log: Path, *words: str) -> Iterator[None]:
    """One of Spark's daemons, until the block ends."""
    import pyspark

    command = [str(Path(pyspark.__file__).parent / "bin/spark-class"), *words]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "SPARK_DAEMON_MEMORY": "256m"}
    with log.open("wb") as out:
        child = subprocess.Popen(command, cwd=log.parent, env=environment, stdout=out, stderr=out)
    try:
        yield
    finally:
        child.terminate()
        child.wait()


def test_an_executor_reads_a_log(spark: Any, bookie_cluster: LocalCluster, tmp_path: Path) -> None:
    """All entries of its ledgers, read in processes that the worker started."""
    master = f"spark://127.0.0.1:{(port := free_port())}"
    world = World(spark, bookie_cluster.uri)
    with world.client as client:
        client.logs.create("far", [world.ledger(count) for count in (300, 30)])
    where = ("--host", "127.0.0.1", "--webui-port", "0")
    daemons = "org.apache.spark.deploy"
    with (
        process(tmp_path / "master.log", f"{daemons}.master.Master", *where, "--port", str(port)),
        process(tmp_path / "worker.log", f"{daemons}.worker.Worker", *where, "-c", "2", "-m", "1g", master),
    ):
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, master, world.uri],
            env=environment,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
    assert done.returncode == 0, done.stderr + (tmp_path / "worker.log").read_text()
    assert done.stdout.splitlines() == ["330 2 3300", f"1 {master}"]
