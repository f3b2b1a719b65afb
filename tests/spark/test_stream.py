"""`spark.readStream` on ledgers, a log and a filter: each entry once, within limits, across restarts."""

import runpy
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bookie.local import LocalCluster
from tests.fixtures.spark_world import SparkCluster

pytestmark = [
    pytest.mark.interop,
    pytest.mark.leaks("the client of the module connects to bookies when it needs them"),
]

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def world(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    """A bookie with an embedded store."""
    with LocalCluster(1, directory=tmp_path_factory.mktemp("cluster")) as cluster:
        made = SparkCluster(spark, cluster.uri)
        with made.client:
            yield made


class Query:
    """A stream into a directory of Parquet files, restarted again and again on one checkpoint."""

    def __init__(self, world: SparkCluster, directory: Path, **options: str) -> None:
        self.world = world
        self.out = str(directory / "out")
        self.checkpoint = str(directory / "checkpoint")
        self.options = {"metadataServiceUri": world.uri, "startingOffsets": "earliest", **options}

    def start(self, **trigger: Any) -> Any:
        """Start the query; with availableNow it ends when it has read what was available."""
        stream = self.world.spark.readStream.format("bookkeeper").options(**self.options).load()
        writer = stream.select("ledger_id", "entry_id", "value").writeStream.format("parquet")
        return writer.option("path", self.out).option("checkpointLocation", self.checkpoint).trigger(**trigger).start()

    def run(self) -> list[int]:
        """Run to the end of what is available; return the rows of each batch."""
        query = self.start(availableNow=True)
        query.awaitTermination()
        return [progress.numInputRows for progress in query.recentProgress if progress.numInputRows]

    def rows(self) -> list[tuple[int, int]]:
        """Return everything written so far."""
        frame = self.world.spark.read.schema("ledger_id bigint, entry_id bigint").parquet(self.out)
        return sorted((row.ledger_id, row.entry_id) for row in frame.collect())


def test_a_log_is_read_once_across_restarts(world: SparkCluster, tmp_path: Path) -> None:
    """Within maxOffsetsPerTrigger, ledgers that are added to the log later are read, and nothing is read twice."""
    ledgers = [world.ledger(25), world.ledger(15)]
    world.client.logs.create("streamed", ledgers)
    query = Query(world, tmp_path, log="streamed", maxOffsetsPerTrigger="16")
    assert query.run() == [16, 16, 8]
    expected = [(ledger, entry) for ledger, count in zip(ledgers, (25, 15), strict=True) for entry in range(count)]
    assert query.rows() == expected
    assert query.run() == []
    more = world.ledger(5)
    world.client.logs.append("streamed", [more])
    assert query.run() == [5]
    assert query.rows() == [*expected, *((more, entry) for entry in range(5))]


def test_an_open_ledger_is_followed(world: SparkCluster, tmp_path: Path) -> None:
    """It is read while its writer adds and after it was closed, as is a ledger that appears meanwhile."""
    custom = {"application": b"tail"}
    with world.client.create_ledger(
        ensemble_size=1, write_quorum_size=1, ack_quorum_size=1, custom_metadata=custom
    ) as ledger:
        ledger.append(b"0")
        ledger.append(b"1")
        query = Query(world, tmp_path, ledgerFilter="application=tail", startingOffsets="latest")
        running = query.start(processingTime="0 seconds")
        try:
            running.processAllAvailable()
            for entry in range(2, 6):
                ledger.append(b"%d" % entry)
            running.processAllAvailable()
            new = world.ledger(3, custom_metadata=custom)
            ledger.append(b"6")
            ledger.close()
            running.processAllAvailable()
        finally:
            running.stop()
    rows = query.rows()
    first = rows[0][1]
    assert first in {1, 2}
    assert rows == [*((ledger.id, entry) for entry in range(first, 7)), *((new, entry) for entry in range(3))]


def test_a_ledger_that_is_deleted_under_a_stream(world: SparkCluster, tmp_path: Path) -> None:
    """An error with the remedy; with failOnDataLoss=false it continues with the others."""
    gone = world.client.create_ledger(ensemble_size=1, write_quorum_size=1, ack_quorum_size=1).id
    left = world.ledger(10)
    query = Query(world, tmp_path, ledgers=f"{gone},{left}")
    assert query.run() == [10]
    world.client.delete_ledger(gone)
    with pytest.raises(Exception, match=rf"ledger {gone} .*set failOnDataLoss=false"):
        query.run()
    query.options["failOnDataLoss"] = "false"
    query.run()
    assert query.rows() == [(left, entry) for entry in range(10)]


def test_options_that_are_not_for_streams(world: SparkCluster, tmp_path: Path) -> None:
    """Options that do not apply to streams are refused with the reason."""
    ledger = world.ledger(1)
    wrong = {"openMode": "recovery", "allowFencing": "true"}
    with pytest.raises(Exception, match="option openMode=recovery of format bookkeeper: does not apply to streams"):
        Query(world, tmp_path, ledgers=str(ledger), **wrong).run()


def test_the_example(world: SparkCluster, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """It prints what its page promises; the session that it uses remains."""
    monkeypatch.setattr(sys, "argv", ["spark_read.py", world.uri])
    monkeypatch.setattr(type(world.spark), "stop", lambda _: None)
    runpy.run_path(str(ROOT / "docs/examples/spark_read.py"), run_name="__main__")
    said = capsys.readouterr().out.splitlines()
    assert said == ["1000 entries", "event 0, event 1, event 2", "streamed: 1000"]
