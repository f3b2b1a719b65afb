"""Format `bookkeeper`, reading, in a real Spark session from real bookies."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from bookie.local import LocalCluster
from bookie.metadata import open_driver
from bookie.metadata.records.ledger_metadata import LedgerState, Segment
from tests.fixtures.spark_world import SparkCluster, payload

pytestmark = [
    pytest.mark.interop,
    pytest.mark.leaks("the client of the module connects to bookies when it needs them"),
]

PASSWORD = b"secret"


@pytest.fixture(scope="module")
def world(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    """Two bookies with an embedded store."""
    with LocalCluster(2, directory=tmp_path_factory.mktemp("cluster")) as cluster:
        made = SparkCluster(spark, cluster.uri)
        with made.client:
            yield made


def test_every_column_of_every_entry(world: SparkCluster) -> None:
    """BR12. Ids, payloads of several sizes, the ledger's length, the LAC and metadata are those of the writer."""
    custom = {"application": b"spark", "topic": b"a"}
    ledger = world.ledger(50, custom_metadata=custom)
    frame = world.read(ledgers=str(ledger), includeMetadata="true")
    assert [(field.name, field.dataType.simpleString()) for field in frame.schema] == [
        ("ledger_id", "bigint"),
        ("entry_id", "bigint"),
        ("value", "binary"),
        ("entry_size", "int"),
        ("length", "bigint"),
        ("lac", "bigint"),
        ("ledger_ctime", "timestamp"),
        ("metadata", "map<string,binary>"),
    ]
    length = 0
    for entry, row in enumerate(frame.collect()):
        data = payload(ledger, entry, 10)
        length += len(data)
        assert (row.ledger_id, row.entry_id, bytes(row.value)) == (ledger, entry, data)
        assert (row.entry_size, row.length) == (len(data), length)
        assert -1 <= row.lac < entry
        assert {key: bytes(value) for key, value in row.metadata.items()} == custom
    assert length == world.client.ledger_metadata(ledger).length
    assert world.read(ledgers=str(ledger), includeValue="false").columns == [
        "ledger_id",
        "entry_id",
        "entry_size",
        "length",
        "lac",
        "ledger_ctime",
    ]


def test_ledgers_are_split_and_packed(world: SparkCluster) -> None:
    """A large ledger has several partitions, small ones share one, and striped and empty ones are read like others."""
    large = world.ledger(300, size=500)
    small = [world.ledger(3), world.ledger(0), world.ledger(7, ensemble=2, digest_type="CRC32")]
    frame = world.read(ledgers=f"{large}, {small[0]}-{small[-1]}", maxPartitionBytes="64k", readBatchEntries="50")
    assert frame.rdd.getNumPartitions() in {3, 4}
    expected = [(large, entry) for entry in range(300)]
    expected += [(small[0], entry) for entry in range(3)] + [(small[2], entry) for entry in range(7)]
    assert [(row.ledger_id, row.entry_id) for row in frame.select("ledger_id", "entry_id").collect()] == expected
    assert world.read(ledgers=str(small[1])).count() == 0
    assert world.read(ledgers=str(large), minPartitions="6").rdd.getNumPartitions() == 6


def test_ledgers_are_split_into_uneven_parts(world: SparkCluster) -> None:
    """Numbers of entries that the number of parts does not divide: parts differ by one entry at most, beside a ledger
    with fewer entries than parts, and each entry is in exactly one of them.
    """
    ledger, few = world.ledger(53, size=40), world.ledger(2, size=40)
    for parts in (7, 53):
        frame = world.read(ledgers=str(ledger), minPartitions=str(parts)).select("entry_id")
        found = frame.rdd.glom().collect()
        sizes = [len(part) for part in found]
        assert len(sizes) == parts
        assert max(sizes) - min(sizes) <= 1
        assert [row.entry_id for part in found for row in part] == list(range(53))
    both = world.read(ledgers=f"{ledger},{few}", minPartitions="7").select("ledger_id", "entry_id")
    assert both.rdd.getNumPartitions() >= 7
    rows = sorted((row.ledger_id, row.entry_id) for row in both.collect())
    assert rows == [(ledger, entry) for entry in range(53)] + [(few, entry) for entry in range(2)]


def test_offsets_and_filters_cut_what_is_read(world: SparkCluster) -> None:
    """Starting and ending offsets by ledger; filters on ids are applied exactly if they are pushed down."""
    one, two = world.ledger(10), world.ledger(10)
    both = {"ledgers": f"{one},{two}"}
    got = world.ids(
        **both, startingOffsets=f'{{"{one}": 7, "{two}": -2}}', endingOffsets=f'{{"{one}": -1, "{two}": 2}}'
    )
    assert got == [(one, 7), (one, 8), (one, 9), (two, 0), (two, 1)]
    for pushdown in ("true", "false"):
        frame = world.read(**both, pushdown=pushdown)
        found = frame.where(f"ledger_id = {two} and entry_id > 3 and entry_id <= 5 and entry_size >= 0")
        assert sorted(row.entry_id for row in found.collect()) == [4, 5]
        assert frame.where(f"ledger_id in ({one}, 5000) and entry_id >= 8").count() == 2
    behind = world.refused(ledgers=str(one), startingOffsets=f'{{"{one}": 11}}')
    assert behind.endswith(f"is beyond the end of ledger {one}, whose next entry is 10")


def test_an_open_ledger_is_read_to_its_lac_and_never_fenced(world: SparkCluster) -> None:
    """OP6, BR5. Its writer continues; entries after the LAC are only read with readMode=unconfirmed; it is fenced only
    with both options.
    """
    with world.client.create_ledger(ensemble_size=1, write_quorum_size=1, ack_quorum_size=1) as ledger:
        for entry in range(5):
            ledger.append(payload(ledger.id, entry, 10))
        unconfirmed = {"ledgers": str(ledger.id), "readMode": "unconfirmed"}
        assert world.ids(**unconfirmed) == [(ledger.id, entry) for entry in range(5)]
        confirmed = len(world.ids(ledgers=str(ledger.id)))
        assert confirmed in {4, 5}
        assert "allowFencing=true" in world.refused(ledgers=str(ledger.id), openMode="recovery")
        ledger.append(b"the writer was not fenced")
        assert world.client.ledger_metadata(ledger.id).state is LedgerState.OPEN
        assert len(world.ids(ledgers=str(ledger.id), openMode="recovery", allowFencing="true")) == 6
        assert world.client.ledger_metadata(ledger.id).state is LedgerState.CLOSED


def test_a_filter_on_custom_metadata_finds_ledgers(world: SparkCluster) -> None:
    """All pairs must match, and negated keys must be absent; nothing else is read."""
    kind = {"application": b"filtered"}
    one = world.ledger(2, custom_metadata={**kind, "topic": b"x"})
    two = world.ledger(2, custom_metadata={**kind, "topic": b"y"})
    assert {ledger for ledger, _ in world.ids(ledgerFilter="application=filtered")} == {one, two}
    assert {ledger for ledger, _ in world.ids(ledgerFilter="application=filtered, topic=y")} == {two}
    bare = world.ledger(2, custom_metadata=kind)
    empty = world.ledger(2, custom_metadata={**kind, "topic": b""})
    assert {ledger for ledger, _ in world.ids(ledgerFilter="application=filtered,!topic")} == {bare}
    assert {ledger for ledger, _ in world.ids(ledgerFilter="application=filtered,topic=")} == {empty}


def test_a_log_is_read_in_its_order(world: SparkCluster) -> None:
    """The order is that of the log, not of the ids; a log that does not exist is named."""
    ledgers = [world.ledger(2) for _ in range(3)]
    order = [ledgers[2], ledgers[0], ledgers[1]]
    world.client.logs.create("ordered", order)
    rows = world.read(log="ordered").select("ledger_id").collect()
    assert [row.ledger_id for row in rows][::2] == order
    assert "nowhere" in world.refused(log="nowhere")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "format bookkeeper: give exactly one of ledgers, log, ledgerFilter; got none"),
        ({"ledgers": "1", "log": "a"}, "got ledgers and log"),
        ({"ledgers": "5-1"}, "option ledgers='5-1' of format bookkeeper: must be ids and ranges of ids"),
        (
            {"ledgers": "1", "readBatchBytes": "lots"},
            "option readBatchBytes='lots' of format bookkeeper: must be a number of bytes",
        ),
        ({"ledgerFilter": "application"}, "must be pairs of custom metadata"),
        ({"ledgerFilter": "!"}, "must be pairs of custom metadata"),
        ({"ledgers": "1", "startingOffset": "earliest"}, "did you mean startingOffsets?"),
        ({"ledgers": "1", "startingOffsets": "latest"}, "a batch query would read nothing"),
        ({"ledgers": "1", "endingOffsets": "[]"}, "must be latest, or JSON of ledger and entry"),
        ({"ledgers": "1", "bookkeeper.readTimeout": "1"}, "no such setting of the client"),
        ({"ledgers": "1", "digestType": "MD5"}, "digest type 'MD5' must be one of"),
        ({"ledgers": "99999"}, "ledger 99999"),
    ],
)
def test_a_wrong_option_is_one_line(world: SparkCluster, options: dict[str, str], message: str) -> None:
    """Spark's error ends with what is wrong and the remedy."""
    assert message in world.refused(**options)


def test_passwords(world: SparkCluster) -> None:
    """The right password reads; none and a wrong one are distinguished from a missing ledger; a MAC is verified."""
    ledger = world.ledger(3, password=PASSWORD, digest_type="HMAC")
    assert len(world.ids(ledgers=str(ledger), password=PASSWORD.decode())) == 3
    assert len(world.ids(ledgers=str(ledger), verifyDigest="false")) == 3
    for wrong in ({}, {"password": "guess"}):
        message = world.refused(ledgers=str(ledger), **wrong)
        assert "UnauthorizedAccess" in message
        assert f"ledger {ledger}: wrong password" in message
        assert "guess" not in message
    message = world.refused(ledgers=str(ledger), password=PASSWORD.decode(), digestType="CRC32")
    assert "DigestMismatch" in message


def test_a_deleted_ledger(world: SparkCluster) -> None:
    """An error with the remedy; with failOnDataLoss=false the others are read."""
    gone, left = world.ledger(3), world.ledger(3)
    world.client.delete_ledger(gone)
    message = world.refused(ledgers=f"{gone},{left}")
    assert f"ledger {gone} does not exist" in message
    assert "set failOnDataLoss=false" in message
    assert world.ids(ledgers=f"{gone},{left}", failOnDataLoss="false") == [(left, entry) for entry in range(3)]


def test_entries_that_no_bookie_has(world: SparkCluster) -> None:
    """BR7. An error names the entry; with failOnDataLoss=false the other entries of the ledger are read, in order."""
    ledger = world.ledger(20)
    driver = open_driver(world.uri)
    driver.start()
    try:
        known = driver.ledgers.read(ledger)
        here = known.value.segments[0].bookies
        others = tuple(set(world.client.bookies()) - set(here))
        segments = (Segment(0, here), Segment(4, others), Segment(7, here))
        driver.ledgers.write(ledger, replace(known.value, segments=segments), known.version)
    finally:
        driver.stop()
    message = world.refused(ledgers=str(ledger))
    assert f"entry 4 of ledger {ledger} is not read" in message
    left = [entry for _, entry in world.ids(ledgers=str(ledger), failOnDataLoss="false")]
    assert left == [*range(4), *range(7, 20)]
