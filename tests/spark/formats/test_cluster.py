"""Formats bookkeeper-ledgers, -bookies and -replicas in a real Spark session, on real bookies."""

from typing import Any

import pytest

from bookie.client import BookKeeper
from tests.fixtures.bookies import BookieProcess
from tests.spark.planted import PAYLOAD, Planted, plant

pytestmark = [pytest.mark.interop, pytest.mark.leaks("the gateway to Spark opens connections of its own")]


def load(spark: Any, kind: str, uri: str, **options: str) -> Any:
    return spark.read.format(f"bookkeeper-{kind}").options(metadataServiceUri=uri, **options).load()


def test_ledgers(spark: Any, three_bookies: list[BookieProcess], three_uri: str) -> None:
    """Each column, of a closed ledger and of one that is being written."""
    ids = plant(three_uri, three_bookies, 8001, 4, Planted())
    with (
        BookKeeper(three_uri) as client,
        client.create_ledger_advanced(8002, ensemble_size=1, write_quorum_size=1, ack_quorum_size=1),
    ):
        rows = load(spark, "ledgers", three_uri, ledgers="8001-8002", partitions="2").orderBy("ledger_id").collect()
    closed, still_open = rows
    assert (closed.state, closed.last_entry, closed.length, closed.digest_type) == ("CLOSED", 3, 40, "CRC32C")
    assert (closed.ensemble_size, closed.write_quorum, closed.ack_quorum) == (3, 3, 3)
    assert [(one.first_entry, one.bookies) for one in closed.ensembles] == [(0, ids)]
    assert {key: bytes(value) for key, value in closed.metadata.items()} == {"application": b"planted"}
    assert closed.ctime.timestamp() == 1_700_000_000
    assert (still_open.state, still_open.last_entry, still_open.length) == ("OPEN", None, None)


def test_bookies(spark: Any, three_bookies: list[BookieProcess], three_uri: str) -> None:
    """The addresses and disk space of bookies."""
    rows = load(spark, "bookies", three_uri).collect()
    assert sorted(row.bookie_id for row in rows) == sorted(bookie.id for bookie in three_bookies)
    for row in rows:
        assert (row.mode, row.rack, row.problem) == ("writable", "/default-rack", None)
        assert row.total_bytes > row.free_bytes > 0
        assert [end.port for end in row.endpoints if end.protocol == "bookie-rpc"] == [int(row.bookie_id.split(":")[1])]


def test_replicas(spark: Any, three_bookies: list[BookieProcess], three_uri: str) -> None:
    """BP-24: a missing replica, a flipped bit, a wrong length and an extra entry are each found where they are."""
    planted = Planted(missing=[(1, 2)], flipped=[(2, 3)], wrong_length=[(1, 4)], extra=[(0, 9)])
    ids = plant(three_uri, three_bookies, 8010, 6, planted)
    frame = load(spark, "replicas", three_uri, ledgers="8010", sample="all")
    rows = {(row.entry_id, row.bookie_id): row.status for row in frame.collect()}
    expected = {(entry, bookie): "OK" for entry in range(6) for bookie in ids}
    expected |= {(2, ids[1]): "MISSING", (3, ids[2]): "DIGEST", (4, ids[1]): "LENGTH", (9, ids[0]): "EXTRA"}
    assert rows == expected
    bad = load(spark, "replicas", three_uri, ledgers="8010", findingsOnly="true").collect()
    # the ends of each segment are read, and lists of entries show the rest
    assert sorted((row.entry_id, row.status) for row in bad) == [(2, "MISSING"), (9, "EXTRA")]


def test_a_length_that_no_majority_has(spark: Any, three_bookies: list[BookieProcess], three_uri: str) -> None:
    """Of two replicas neither is right by majority: both are reported. The metadata decides on the last entry."""
    ids = plant(three_uri, three_bookies[:2], 8011, 4, Planted(wrong_length=[(0, 1), (1, 3)]))
    bad = load(spark, "replicas", three_uri, ledgers="8011", sample="all", findingsOnly="true").collect()
    assert {(row.entry_id, row.bookie_id, row.status) for row in bad} == {
        (1, ids[0], "LENGTH"),
        (1, ids[1], "LENGTH"),
        (3, ids[1], "LENGTH"),
    }


def test_replicas_of_striped_and_open_ledgers(spark: Any, three_bookies: list[BookieProcess], three_uri: str) -> None:
    """There is a row for each entry and bookie of its write set; of an open ledger up to its LAC."""
    with (
        BookKeeper(three_uri) as client,
        client.create_ledger(ensemble_size=3, write_quorum_size=2, ack_quorum_size=2) as ledger,
    ):
        for _ in range(20):
            ledger.append(PAYLOAD)
        number = ledger.id
        options = {"ledgers": str(number), "sample": "all", "maxBytesPerSecondPerBookie": "4m"}
        rows = load(spark, "replicas", three_uri, **options).collect()
        assert {row.status for row in rows} == {"OK"}
        entries = [row.entry_id for row in rows]
        assert sorted(entries) == sorted([*range(max(entries) + 1)] * 2)
        assert max(entries) >= 17
    metadata_rows = load(spark, "replicas", three_uri, ledgers=str(number), sample="percent").collect()
    assert {row.status for row in metadata_rows} == {"OK"}
    assert {0, 19} <= {row.entry_id for row in metadata_rows}


def test_a_bookie_that_is_gone(spark: Any, new_bookies: Any) -> None:
    """Its replicas are rows with the reason why they could not be read; the job does not fail."""
    bookies = new_bookies(2)
    for bookie in bookies:
        bookie.start()
    uri = f"grpc://{bookies[0].admin}"
    ids = plant(uri, bookies, 8020, 3, Planted())
    bookies[1].kill()
    rows = load(spark, "replicas", uri, ledgers="8020", sample="all").collect()
    states = {(row.entry_id, row.bookie_id): row.status for row in rows}
    assert {states[entry, ids[0]] for entry in range(3)} == {"OK"}
    assert {states[entry, ids[1]] for entry in range(3)} <= {"ERROR", "TIMEOUT"}
    assert all(row.detail for row in rows if row.status != "OK")


def test_wrong_options(spark: Any, three_uri: str) -> None:
    """A missing metadata service URI, and an option of another format."""
    with pytest.raises(Exception, match="metadataServiceUri of format bookkeeper-ledgers: is required"):
        spark.read.format("bookkeeper-ledgers").load()
    with pytest.raises(Exception, match="no such option"):
        load(spark, "bookies", three_uri, sample="all")
