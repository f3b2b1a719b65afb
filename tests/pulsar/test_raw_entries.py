"""Reads what a Pulsar broker stores without the broker: by our client, and in Spark by name of the topic.

This broker has no setting for the place of its ledgers, so they are in its default place, and it speaks V3.
"""

import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from crc32c import crc32c

from bookie.metadata.records.ledger_metadata import DigestType, LedgerState
from tests.fixtures.spark_world import SparkCluster
from tests.pulsar.world import MARKS, Pulsar, deliver, numbered, received
from tests.spark.test_examples import EXAMPLES, call
from tests.spark.test_stream import Query

pytestmark = MARKS
WORLD = {"named": False, "v2": False}
"""It takes its own place for the ledgers, and V3."""

Messages = Callable[[bytes], list[bytes]]


@pytest.fixture(scope="module")
def messages() -> Messages:
    """Return the messages, with entries taken apart as in the example."""
    pytest.importorskip("pyspark.sql", reason="pyspark is not installed (make spark)", exc_type=ImportError)
    found: Messages = runpy.run_path(str(EXAMPLES / "pulsar_topic.py"))["messages"]
    return found


def stored(world: Pulsar, ledger: int) -> list[bytes]:
    """Return all confirmed entries of a ledger, by our client, without disturbing its writer."""
    with world.client.open_ledger(ledger, recovery=False) as reader:
        last = reader.last_add_confirmed
        return [bytes(entry.data) for entry in reader.read(0, last)] if last >= 0 else []


@pytest.mark.parametrize("batched", [False, True])
def test_entries_of_a_topic(world: Pulsar, connected: Any, topic: str, messages: Messages, batched: bool) -> None:
    """They hold what was sent, under checksums that hold; while the broker writes, all but the last entry."""
    deliver(connected, topic, range(500), batched=batched)
    ledgers = world.ledgers(topic)
    metadata = world.client.ledger_metadata(ledgers[-1])
    assert metadata.custom == {
        "application": b"pulsar",
        "component": b"managed-ledger",
        "pulsar/managed-ledger": topic.replace("default/", "default/persistent/").encode(),
    }
    assert (metadata.state, metadata.digest_type) == (LedgerState.OPEN, DigestType.CRC32C)
    entries = [entry for ledger in ledgers for entry in stored(world, ledger)]
    assert len({len(messages(entry)) for entry in entries}) == 1 or batched
    for entry in entries:
        assert entry[:2] == b"\x0e\x01"
        assert int.from_bytes(entry[2:6]) == crc32c(entry[6:])
    found = [message for entry in entries for message in messages(entry)]
    assert len(found) < 500
    assert found == numbered(0, len(found))
    world.broker.admin("PUT", f"persistent/{topic}/unload")
    closed = world.client.ledger_metadata(ledgers[-1])
    assert closed.state is LedgerState.CLOSED
    entries = [entry for ledger in ledgers for entry in stored(world, ledger)]
    assert [message for entry in entries for message in messages(entry)] == numbered(0, 500)
    assert stored(world, ledgers[-1])[closed.last_entry :] == entries[-1:]


def test_a_topic_by_its_name(
    world: Pulsar,
    connected: Any,
    topic: str,
    spark: Any,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """The example runs unchanged and finds messages, single and in batches, and nothing of the subscriptions."""
    consumer = connected.subscribe(topic, "reading")
    deliver(connected, topic, range(300))
    deliver(connected, topic, range(300, 600), batched=True)
    for one in received(consumer, 600):
        consumer.acknowledge(one)
    consumer.close()
    world.broker.admin("PUT", f"persistent/{topic}/unload")
    name = topic.replace("default/", "default/persistent/")
    call(monkeypatch, spark, "pulsar_topic.py", world.uri, name)
    said = capfd.readouterr().out.splitlines()
    first, *_ = ledgers = world.ledgers(topic)
    assert "600 messages" in said
    assert f"{first} 0 0 {numbered(0, 1)[0]!r}" in said
    assert said[-1].startswith(f"{ledgers[-1]} ")
    assert said[-1].endswith(repr(numbered(599, 600)[0]))


def test_a_stream_of_a_topic(
    world: Pulsar, connected: Any, topic: str, spark: Any, messages: Messages, tmp_path: Path
) -> None:
    """Each entry comes once, over restarts of the stream and new ledgers; the broker deletes the ledger left empty."""
    name = topic.replace("default/", "default/persistent/")
    wanted = {"ledgerFilter": f"pulsar/managed-ledger={name},!pulsar/cursor", "failOnDataLoss": "false"}
    query = Query(SparkCluster(spark, world.uri), tmp_path, **wanted)
    deliver(connected, topic, range(250))
    reload(world, connected, topic)
    *_, empty = world.ledgers(topic)
    assert sum(query.run()) == 250
    reload(world, connected, topic)
    assert empty not in world.ledgers(topic)
    deliver(connected, topic, range(250, 700))
    begun = sum(query.run())
    assert 400 <= begun < 450
    world.broker.admin("PUT", f"persistent/{topic}/unload")
    assert begun + sum(query.run()) == 450
    rows = spark.read.parquet(query.out).select("ledger_id", "entry_id", "value").collect()
    found = [messages(row.value) for row in sorted(rows, key=lambda row: (row.ledger_id, row.entry_id))]
    assert [one for (one,) in found] == numbered(0, 700)


def reload(world: Pulsar, connected: Any, topic: str) -> None:
    """Make the broker close the topic, and open it again as somebody asks for it."""
    world.broker.admin("PUT", f"persistent/{topic}/unload")
    connected.subscribe(topic, "looking").close()
