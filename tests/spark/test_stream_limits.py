"""The limits of a stream's batch, and what it waits for: bytes through Spark, waits by calling the reader."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bookie.local import LocalCluster
from bookie.spark.clients import close_all
from bookie.spark.source.offsets import Offset
from bookie.spark.source.settings import SourceSettings
from tests.fixtures.spark_world import SparkCluster

pytestmark = [
    pytest.mark.interop,
    pytest.mark.leaks("the client of the module connects to bookies when it needs them"),
]


@pytest.fixture(scope="module")
def world(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    """A bookie with an embedded store."""
    with LocalCluster(1, directory=tmp_path_factory.mktemp("cluster")) as cluster:
        made = SparkCluster(spark, cluster.uri)
        with made.client:
            yield made
        close_all()


def batches(world: SparkCluster, directory: Path, **options: str) -> list[int]:
    """Return the rows of each batch, to the end of what is available."""
    given = {"metadataServiceUri": world.uri, "startingOffsets": "earliest", **options}
    stream = world.spark.readStream.format("bookkeeper").options(**given).load()
    writer = stream.select("ledger_id", "entry_id").writeStream.format("noop")
    query = writer.option("checkpointLocation", str(directory)).trigger(availableNow=True).start()
    query.awaitTermination()
    return [progress.numInputRows for progress in query.recentProgress if progress.numInputRows]


def test_bytes_of_a_batch(world: SparkCluster, tmp_path: Path) -> None:
    """The limit uses the mean size of a ledger's entries, here 100; an entry larger than the limit is a batch alone."""
    ledger = str(world.ledger(30, size=100))
    assert batches(world, tmp_path / "some", ledgers=ledger, maxBytesPerTrigger="1000") == [10, 10, 10]
    few = str(world.ledger(3, size=100))
    assert batches(world, tmp_path / "one", ledgers=few, maxBytesPerTrigger="1") == [1, 1, 1]


@pytest.mark.parametrize(("delay", "comes"), [("1h", False), ("0s", True)])
def test_entries_that_a_batch_waits_for(world: SparkCluster, delay: str, comes: bool) -> None:
    """After the first batch, too few entries wait until the delay is over; enough of them, in closed ledgers and a new
    one, are a batch at once.
    """
    from bookie.spark.source.stream import StreamReader

    log = f"waited {delay}"
    ledgers = [world.ledger(20)]
    world.client.logs.create(log, ledgers)
    given = {"metadataServiceUri": world.uri, "log": log, "startingOffsets": "earliest"}
    settings = SourceSettings.of({**given, "minOffsetsPerTrigger": "10", "maxTriggerDelay": delay})
    reader = StreamReader(settings)
    limit = reader.getDefaultReadLimit()
    first = reader.latestOffset(reader.initialOffset(), limit)
    assert Offset.parse(first).next == {ledgers[0]: 20}
    ledgers.append(world.ledger(4))
    world.client.logs.append(log, ledgers[1:])
    second = reader.latestOffset(first, limit)
    assert (second != first) is comes
    ledgers.append(world.ledger(16))
    world.client.logs.append(log, ledgers[2:])
    third = Offset.parse(reader.latestOffset(second, limit)).next
    assert third[ledgers[2]] == 16
    assert (ledgers[1] in third) is not comes, "one that was finished in the batch before is left out"
