"""A standalone Spark cluster on loopback: a master and two workers, whose executors read a log and run jobs."""

import json
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
from tests.fixtures.spark import SETTINGS
from tests.fixtures.spark_world import SparkCluster

pytestmark = [
    pytest.mark.slow,
    pytest.mark.interop,
    pytest.mark.leaks("gRPC keeps its own threads and their descriptors as long as the process lives"),
]
pytest_plugins = ["bookie.local.fixtures"]

ROOT = Path(__file__).resolve().parents[2]
LIGHT = SETTINGS["spark.driver.extraJavaOptions"]
PATIENCE_S = 900
"""Five JVMs start, possibly on a busy machine."""
CONF = {
    **SETTINGS,
    "spark.executor.memory": "512m",
    "spark.executor.extraJavaOptions": LIGHT,
    # A query starts when both executors are registered.
    "spark.cores.max": "2",
    "spark.scheduler.minRegisteredResourcesRatio": "1",
    "spark.scheduler.maxRegisteredResourcesWaitingTime": "120s",
}
PROGRAM = """
import json, os, sys
from pyspark.sql import SparkSession
from bookie.spark import register
master, uri, conf = sys.argv[1:]
builder = SparkSession.builder.master(master)
for key, value in json.loads(conf).items():
    builder = builder.config(key, value)
spark = builder.getOrCreate()
register(spark)

def workers(batches):
    import pyarrow as pa
    for batch in batches:
        yield pa.RecordBatch.from_pydict({"worker": [os.getppid()], "entries": [len(batch)]})

log = spark.read.format("bookkeeper").option("metadataServiceUri", uri).option("log", "far")
log = log.option("minPartitions", "8").load()
print(*log.selectExpr("count(*)", "count(distinct ledger_id)", "sum(entry_size)").first())
rows = log.mapInArrow(workers, "worker long, entries long").collect()
print(len({row.worker for row in rows}), sum(row.entries for row in rows))
spark.stop()
"""


@contextmanager
def process(log: Path, *words: str) -> Iterator[None]:
    """Run one of Spark's daemons until the block ends."""
    import pyspark

    command = [str(Path(pyspark.__file__).parent / "bin/spark-class"), *words]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "SPARK_DAEMON_MEMORY": "256m"}
    environment["SPARK_DAEMON_JAVA_OPTS"] = LIGHT
    with log.open("wb") as out:
        child = subprocess.Popen(command, cwd=log.parent, env=environment, stdout=out, stderr=out)
    try:
        yield
    finally:
        child.terminate()
        child.wait()


@pytest.fixture
def master(tmp_path: Path) -> Iterator[str]:
    """A master with two workers of one core each."""
    url = f"spark://127.0.0.1:{(port := free_port())}"
    where = ("--host", "127.0.0.1", "--webui-port", "0")
    daemons = "org.apache.spark.deploy"
    worker = (f"{daemons}.worker.Worker", *where, "-c", "1", "-m", "1g", "-d", str(tmp_path / "work"), url)
    with (
        process(tmp_path / "master.log", f"{daemons}.master.Master", *where, "--port", str(port)),
        process(tmp_path / "worker1.log", *worker),
        process(tmp_path / "worker2.log", *worker),
    ):
        yield url


def ran(directory: Path, *words: str, program: str = sys.executable) -> str:
    """Return the output of a program, Python by default, in a process of its own: this one already has a session."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [program, *words],
        env=environment,
        cwd=directory,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 0, done.stderr + "".join(log.read_text() for log in directory.glob("worker*.log"))
    return done.stdout


def test_two_executors_read_a_log(spark: Any, bookie_cluster: LocalCluster, tmp_path: Path, master: str) -> None:
    """All entries of its ledgers are read by Python workers of both executors."""
    world = SparkCluster(spark, bookie_cluster.uri)
    with world.client as client:
        client.logs.create("far", [world.ledger(count) for count in (300, 30)])
    printed = ran(tmp_path, "-c", PROGRAM, master, world.uri, json.dumps(CONF))
    assert printed.splitlines() == ["330 2 3300", "2 330"]


def test_a_program_that_is_submitted(
    spark: Any, bookie_cluster: LocalCluster, tmp_path: Path, master: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As docs/spark.md says for client mode: variables name the interpreters, and Spark finds the formats by itself."""
    import pyspark

    world = SparkCluster(spark, bookie_cluster.uri)
    with world.client as client:
        client.logs.create("far", [world.ledger(count) for count in (300, 30)])
    (tmp_path / "program.py").write_text(PROGRAM.replace("register(spark)", ""))
    for variable in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"):
        monkeypatch.setenv(variable, sys.executable)
    words = [word for key, value in CONF.items() for word in ("--conf", f"{key}={value}")]
    submit = str(Path(pyspark.__file__).parent / "bin/spark-submit")
    printed = ran(tmp_path, *words, "--master", master, "program.py", master, world.uri, "{}", program=submit)
    assert printed.splitlines() == ["330 2 3300", "2 330"]


def test_jobs_run_there(spark: Any, bookie_cluster: LocalCluster, tmp_path: Path, master: str) -> None:
    """Every replica is audited and all entries are exported by tasks of that cluster."""
    world = SparkCluster(spark, bookie_cluster.uri)
    with world.client:
        ids = [world.ledger(count, ensemble=3, quorum=2) for count in (300, 30, 3)]
    words = ["-u", world.uri, "--master", master, "--ledgers", ",".join(map(str, ids)), "-o", "json"]
    words += [word for key, value in CONF.items() for word in ("--conf", f"{key}={value}")]

    def run_job(job: str, *options: str) -> Any:
        return json.loads(ran(tmp_path, "-m", "bookie.spark.bkpipe", job, *words, *options))

    audited = run_job("audit", "--sample", "all", "--to", str(tmp_path / "audit"))
    assert (audited["findings"], audited["replicas"]) == (0, 2 * 333)
    exported = run_job("export", "--to", str(tmp_path / "exported"))
    assert (exported["ledgers"], exported["entries"]) == (3, 333)
    rows = spark.read.parquet(str(tmp_path / "exported"))
    assert {(row.ledger_id, row["count"]) for row in rows.groupBy("ledger_id").count().collect()} == {
        *zip(ids, (300, 30, 3), strict=True)
    }
