"""Format `bookkeeper`, written as a batch: rows become ledgers of a log in the order of partitions, or nothing does."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bookie.client import BookKeeper
from bookie.errors import NoSuchLog

pytestmark = [pytest.mark.interop, pytest.mark.leaks("gRPC keeps its threads as long as the process lives")]


@pytest.fixture
def bk(three_uri: str) -> Iterator[BookKeeper]:
    """A client."""
    with BookKeeper(three_uri) as client:
        yield client


def sink(frame: Any, uri: str, **options: Any) -> Any:
    """Return a writer with small quorums."""
    small = {"metadataServiceUri": uri, "ensembleSize": 1}
    return frame.write.format("bookkeeper").options(**{**small, **options})


def values(bk: BookKeeper, ledgers: tuple[int, ...], password: bytes = b"") -> list[bytes]:
    """Return all entries of these ledgers, in order."""
    found = []
    for ledger in ledgers:
        with bk.open_ledger(ledger, password=password) as reader:
            found += [bytes(entry.data) for batch in reader.batches() for entry in batch]
    return found


def written(bk: BookKeeper, log: str) -> tuple[int, ...]:
    """Return the ledgers of a log."""
    return bk.logs.get(log).value.ledgers


def test_rows_become_entries_in_order(spark: Any, three_uri: str, bk: BookKeeper) -> None:
    """One ledger per partition, ordered by partition, whose metadata says who wrote it; a second write is appended."""
    frame = spark.range(0, 1000, 1, 2).selectExpr("concat('row ', id) AS value")
    options = {"log": "rows", "password": "p", "metadata.app": "test", "writeQuorumSize": 1}
    sink(frame, three_uri, **options).mode("append").save()
    first = written(bk, "rows")
    assert len(first) == 2
    assert values(bk, first, b"p") == [b"row %d" % number for number in range(1000)]
    metadata = bk.ledger_metadata(first[1])
    assert metadata.last_entry == 499
    assert {name: metadata.custom[name] for name in ("app", "spark.partition", "spark.attempt", "spark.log")} == {
        "app": b"test",
        "spark.partition": b"1",
        "spark.attempt": b"0",
        "spark.log": b"rows",
    }
    sink(frame.limit(10), three_uri, **options).mode("append").save()
    assert written(bk, "rows")[:2] == first
    assert values(bk, written(bk, "rows")[2:], b"p") == [b"row %d" % number for number in range(10)]


def test_a_full_ledger_is_followed_by_another(spark: Any, three_uri: str, bk: BookKeeper) -> None:
    """maxLedgerBytes: no ledger is larger, unless a single entry is; nothing is lost between them."""
    frame = spark.range(0, 100, 1, 1).selectExpr(
        "CASE WHEN id = 50 THEN repeat('x', 900) ELSE repeat('y', 100) END value"
    )
    sink(frame, three_uri, log="rolled", maxLedgerBytes=350).mode("append").save()
    ledgers = written(bk, "rolled")
    lengths = [bk.ledger_metadata(ledger).length for ledger in ledgers]
    assert sum(lengths) == 99 * 100 + 900
    assert [length for length in lengths if length > 350] == [900]
    assert values(bk, ledgers) == [b"x" * 900 if number == 50 else b"y" * 100 for number in range(100)]


def test_rows_go_to_the_log_that_they_name(spark: Any, three_uri: str, bk: BookKeeper, tmp_path: Path) -> None:
    """The column log names the log; the option log overrides it; the manifest lists what was written."""
    frame = spark.range(0, 30, 1, 1).selectExpr(
        "CAST(concat('v', id) AS BINARY) value", "concat('log-', id % 3) AS log"
    )
    sink(frame, three_uri, manifestPath=tmp_path / "m").mode("append").save()
    for number in range(3):
        assert values(bk, written(bk, f"log-{number}")) == [b"v%d" % row for row in range(number, 30, 3)]
    sink(frame, three_uri, log="one").mode("append").save()
    assert values(bk, written(bk, "one")) == [b"v%d" % row for row in range(30)]
    (manifest,) = (tmp_path / "m").iterdir()
    assert '"entries": 10' in manifest.read_text()


def test_overwriting_replaces_the_list(spark: Any, three_uri: str, bk: BookKeeper) -> None:
    """The old ledgers are deleted once the new ones are committed; an empty frame empties the log."""
    frame = spark.range(0, 10, 1, 1).selectExpr("concat(id) value")
    sink(frame, three_uri, log="over").mode("append").save()
    old = written(bk, "over")
    sink(frame.limit(5), three_uri, log="over").mode("overwrite").save()
    assert values(bk, written(bk, "over")) == [b"0", b"1", b"2", b"3", b"4"]
    assert not set(old) & set(bk.list_ledgers())
    sink(frame.limit(0), three_uri, log="over").mode("overwrite").save()
    assert written(bk, "over") == ()


def test_a_job_that_fails_leaves_nothing(spark: Any, three_uri: str, bk: BookKeeper) -> None:
    """A row that cannot be written, after thousands that were: neither log nor ledgers remain."""
    before = set(bk.list_ledgers())
    frame = spark.range(0, 15_000, 1, 1).selectExpr("IF(id = 14999, NULL, concat(id)) value")
    with pytest.raises(Exception, match="column value is null in 1 of"):
        sink(frame, three_uri, log="failed").mode("append").save()
    assert set(bk.list_ledgers()) == before


@pytest.mark.parametrize(
    ("columns", "options", "said"),
    [
        ("id AS value", {"log": "a"}, "column value is bigint: it must be binary or string"),
        ("'a' AS value, 1 AS x", {"log": "a"}, "column x cannot be written"),
        ("'a' AS value", {}, "option log of format bookkeeper: is required"),
        ("'a' AS value", {"log": "a", "ensembleSize": 1, "ackQuorumSize": 2}, "ensemble >= write quorum >= ack quorum"),
        ("'a' AS value", {"log": "a", "maxLedgerByte": 5}, "did you mean maxLedgerBytes"),
    ],
)
def test_what_cannot_be_written_is_told(
    spark: Any, three_uri: str, bk: BookKeeper, columns: str, options: dict[str, Any], said: str
) -> None:
    """One line has option or column, value and remedy, through Spark's error."""
    frame = spark.range(0, 10, 1, 1).selectExpr(*columns.split(", "))
    with pytest.raises(Exception, match=said):
        sink(frame, three_uri, **options).mode("append").save()
    with pytest.raises(NoSuchLog):
        bk.logs.get("a")
