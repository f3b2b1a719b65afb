"""Format `bookkeeper`, written as a stream: each batch once, even if it is repeated; complete mode overwrites."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bookie.client import BookKeeper

pytestmark = [pytest.mark.interop, pytest.mark.leaks("gRPC keeps its threads as long as the process lives")]


@pytest.fixture
def bk(three_uri: str) -> Iterator[BookKeeper]:
    """A client."""
    with BookKeeper(three_uri) as client:
        yield client


def ledger_of(bk: BookKeeper, *values: bytes) -> int:
    """Write a closed ledger."""
    with bk.create_ledger(ensemble_size=1, write_quorum_size=1, ack_quorum_size=1) as ledger:
        for value in values:
            ledger.append(value)
    return int(ledger.id)


def values(bk: BookKeeper, log: str) -> list[bytes]:
    """Return all entries of a log, sorted."""
    found = []
    for ledger in bk.logs.get(log).value.ledgers:
        with bk.open_ledger(ledger) as reader:
            found += [bytes(entry.data) for batch in reader.batches() for entry in batch]
    return sorted(found)


def run(frame: Any, uri: str, log: str, checkpoint: Path, mode: str = "append") -> None:
    """Stream what is available into a log."""
    sink = frame.writeStream.format("bookkeeper").options(metadataServiceUri=uri, log=log, ensembleSize="1")
    query = sink.outputMode(mode).option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
    query.awaitTermination()


def streamed(spark: Any, uri: str, log: str, **options: str) -> Any:
    """Read a log as a stream, from its start."""
    reading = {"metadataServiceUri": uri, "log": log, "startingOffsets": "earliest", **options}
    return spark.readStream.format("bookkeeper").options(**reading).load()


def test_a_batch_that_spark_repeats_is_in_the_log_once(
    spark: Any, three_uri: str, bk: BookKeeper, tmp_path: Path
) -> None:
    """The driver dies when a batch is in the log and not yet in the checkpoint: Spark repeats it, and what is written
    again is deleted.
    """
    rows = [b"%d" % number for number in range(6)]
    bk.logs.create("stream-in", [ledger_of(bk, *rows[:3]), ledger_of(bk, *rows[3:])])
    frame = streamed(spark, three_uri, "stream-in", maxOffsetsPerTrigger="2").select("value")
    run(frame, three_uri, "stream-out", tmp_path / "checkpoint")
    written = bk.logs.get("stream-out").value.ledgers
    assert values(bk, "stream-out") == rows
    last = max((tmp_path / "checkpoint/commits").glob("[0-9]*"), key=lambda file: int(file.name))
    assert int(last.name) == 2
    last.unlink()
    last.with_name(f".{last.name}.crc").unlink()
    ledgers = set(bk.list_ledgers())
    run(frame, three_uri, "stream-out", tmp_path / "checkpoint")
    assert last.exists(), "the batch was done again"
    assert bk.logs.get("stream-out").value.ledgers == written
    assert set(bk.list_ledgers()) == ledgers


def test_complete_mode_overwrites(spark: Any, three_uri: str, bk: BookKeeper, tmp_path: Path) -> None:
    """After each batch the log has the entire result and nothing else; the ledgers of the previous one are deleted."""
    bk.logs.create("counted-in", [ledger_of(bk, b"a", b"b", b"a")])
    counts = streamed(spark, three_uri, "counted-in").groupBy("value").count()
    frame = counts.selectExpr("concat(decode(value, 'UTF-8'), ' ', count) AS value")
    run(frame, three_uri, "counted", tmp_path / "checkpoint", mode="complete")
    assert values(bk, "counted") == [b"a 2", b"b 1"]
    before = bk.logs.get("counted").value.ledgers
    bk.logs.append("counted-in", [ledger_of(bk, b"b", b"c")])
    run(frame, three_uri, "counted", tmp_path / "checkpoint", mode="complete")
    assert values(bk, "counted") == [b"a 2", b"b 2", b"c 1"]
    assert not set(before) & set(bk.list_ledgers())
