"""Formats bookkeeper-entrylog and bookkeeper-journal in a real Spark session, on our files and on Java's."""

from pathlib import Path
from typing import Any

import pytest

from bookie.client import BookKeeper
from bookie.client.entries.digest import Digest, DigestType
from tests.reference import entry_log as model
from tests.reference import journal as journal_model

pytestmark = [pytest.mark.interop, pytest.mark.leaks("the gateway to Spark opens connections of its own")]
JAVA = Path(__file__).resolve().parents[2] / "golden/java"
DIGEST = Digest.of(DigestType.CRC32C, b"secret")
ALONE: dict[str, Any] = {"ensemble_size": 1, "write_quorum_size": 1, "ack_quorum_size": 1}


def sealed(ledger: int, entry: int, size: int = 40) -> bytes:
    return DIGEST.seal(ledger, entry, bytes([entry % 251]) * size, lac=entry - 1, length=(entry + 1) * size)


def written(directory: Path, logs: dict[int, list[bytes]], active: list[bytes]) -> Path:
    """Write closed logs by id, and an open one above them."""
    current = directory / "current"
    current.mkdir()
    for number, entries in logs.items():
        (current / f"{number:x}.log").write_bytes(model.build(entries, closed=True))
    (current / f"{max(logs) + 1:x}.log").write_bytes(model.build(active, closed=False))
    return directory


def read(spark: Any, path: Path, **options: Any) -> Any:
    asked = {"password": "secret", **{name: str(value) for name, value in options.items()}}
    return spark.read.format("bookkeeper-entrylog").options(**asked).load(str(path))


def test_columns_and_filters(spark: Any, tmp_path: Path) -> None:
    """A directory stands for its closed logs; ids and ledgers select; payloads are included on request."""
    logs = {9: [sealed(1, 0), sealed(2, 0), sealed(1, 1)], 10: [sealed(3, k) for k in range(5)]}
    path = written(tmp_path, logs, [sealed(1, 2)])
    frame = read(spark, path, validate="digest", includeValue=True)
    rows = {(row.ledger_id, row.entry_id): row for row in frame.where("kind = 'entry'").collect()}
    assert sorted(rows) == [(1, 0), (1, 1), (2, 0), *((3, k) for k in range(5))]
    row = rows[3, 4]
    assert (row.log_id, row.entry_size, row.lac, row.length, row.digest_ok) == (10, 76, 3, 200, True)
    assert row.value == bytes([4]) * 40
    assert row.location == (10 << 32) | row.position
    data = Path(row.path).read_bytes()
    assert data[row.position : row.position + row.entry_size] == sealed(3, 4)
    assert frame.where("kind = 'ledgers_map'").count() == 2
    small = read(spark, path, includeActive=True, ledgers="1,3-4", logIds="9,11").select("ledger_id", "entry_id")
    assert sorted(map(tuple, small.collect())) == [(1, 0), (1, 1), (1, 2)]


def test_damage(spark: Any, tmp_path: Path) -> None:
    """With flipped bits and a torn record, the scan fails with file and byte, skips the damage, or ends there."""
    entries = [sealed(1, k) for k in range(6)]
    size = len(entries[0]) + 4
    data = bytearray(model.build(entries, closed=True))
    data[model.HEADER + size + 60] ^= 1
    torn = model.HEADER + 3 * size
    data[torn : torn + 4] = b"\xff\xff\xff\xff"
    path = tmp_path / "5.log"
    path.write_bytes(data)

    def found(**options: str) -> list[tuple[Any, ...]]:
        frame = read(spark, path, **options).select("kind", "entry_id", "digest_ok", "entry_size")
        return [tuple(row) for row in frame.collect()]

    with pytest.raises(
        Exception, match=rf"5\.log: damaged at byte {model.HEADER + size + 4}: .*entry 1 has an invalid"
    ):
        found(validate="digest")
    with pytest.raises(Exception, match=rf"5\.log: damaged at byte {torn}: no record begins here; set onCorruption"):
        found()
    assert found(validate="digest", onCorruption="truncate") == [("entry", 0, True, 76)]
    assert found(onCorruption="truncate") == [("entry", k, None, 76) for k in range(3)]
    assert found(validate="digest", onCorruption="skip") == [
        ("entry", 0, True, 76),
        ("entry", 1, False, 76),
        ("entry", 2, True, 76),
        ("garbage", None, None, size),
        ("entry", 4, True, 76),
        ("entry", 5, True, 76),
        ("ledgers_map", None, None, 36),
    ]


def test_an_open_log_may_end_within_a_record(spark: Any, tmp_path: Path) -> None:
    """Its writer may still be running, so that is not damage, while the same in a closed log is."""
    path = tmp_path / "1.log"
    path.write_bytes(model.build([sealed(1, 0), sealed(1, 1)], closed=False)[:-5])
    assert read(spark, path).count() == 1
    path.write_bytes(model.build([sealed(1, 0), sealed(1, 1)], closed=True)[:-50])
    with pytest.raises(Exception, match=r"1\.log: damaged at byte"):
        read(spark, path).count()


def test_files_of_java(spark: Any) -> None:
    """Entry logs and a journal that Apache BookKeeper wrote."""
    frame = read(spark, JAVA, includeActive=True, validate="digest", onCorruption="skip", includeValue=True)
    rows = frame.where("kind = 'entry' and ledger_id = 7").orderBy("entry_id").collect()
    assert [row.entry_id for row in rows] == [0, 1, 2, 3, 4, 5, 8, 9, 10]
    assert [len(row.value) for row in rows if row.digest_ok][:3] == [5, 6, 7]
    journal = spark.read.format("bookkeeper-journal").option("includeValue", "true").load(str(JAVA))
    kinds = {row.kind: row["count"] for row in journal.groupBy("kind").count().collect()}
    assert kinds["entry"] == 12
    assert kinds["fence"] >= 1
    assert kinds["master_key"] >= 1
    assert journal.where("kind = 'master_key' and value is not null").count() == 0


def test_damage_in_a_journal(spark: Any, tmp_path: Path) -> None:
    """A bad group before a good one is damage; a truncated newest journal is not."""
    groups = [len(one).to_bytes(4, "big") + one for one in (sealed(1, k) for k in range(3))]
    data = bytearray(journal_model.build(groups, 0x1A))
    path = tmp_path / "1a.txn"
    path.write_bytes(data[: 1536 + 100])
    load = spark.read.format("bookkeeper-journal").options(password="secret", validate="digest")
    assert load.load(str(path)).count() == 2
    data[1024 + 30] ^= 1
    path.write_bytes(data)
    with pytest.raises(Exception, match=r"1a\.txn: damaged at byte 1024"):
        load.load(str(path)).count()
    assert load.option("onCorruption", "truncate").load(str(path)).count() == 1
    kinds = [row.kind for row in load.option("onCorruption", "skip").load(str(path)).collect()]
    assert kinds == ["entry", "garbage"]


def test_the_metadata_tells_digests_and_passwords(spark: Any, three_uri: str, tmp_path: Path) -> None:
    """HMAC with several passwords, CRC32 and DUMMY are verified as each ledger has it, in logs and journals. A deleted
    ledger is treated as without metadata.
    """
    kinds = [(DigestType.HMAC, b"one"), (DigestType.HMAC, b"two"), (DigestType.CRC32, b"one"), (DigestType.DUMMY, b"")]
    digests = [Digest.of(*kind) for kind in kinds]
    with BookKeeper(three_uri) as bk:
        ids = [bk.create_ledger(**ALONE, digest_type=kind.name, password=password).id for kind, password in kinds]
    gone = max(ids) + 1_000_000

    def entry(ledger: int, number: int, digest: Digest) -> bytes:
        return digest.seal(ledger, number, b"payload", lac=number - 1, length=7 * (number + 1))

    entries = [entry(one, number, digest) for number in range(2) for one, digest in zip(ids, digests, strict=True)]
    entries += [entry(gone, 0, DIGEST), entry(ids[1], 2, digests[0]), entry(ids[2], 2, DIGEST)]
    (tmp_path / "1.log").write_bytes(model.build(entries, closed=True))
    records = b"".join(len(one).to_bytes(4, "big") + one for one in entries)
    (tmp_path / "1a.txn").write_bytes(journal_model.build([records], 0x1A))
    for name in ("entrylog", "journal"):
        load = spark.read.format(f"bookkeeper-{name}")
        load = load.options(validate="digest", onCorruption="skip", includeValue="true")

        def verdicts(reader: Any) -> list[tuple[bool, bool]]:
            rows = reader.load(str(tmp_path)).where("kind = 'entry'").orderBy("position").collect()
            return [(row.digest_ok, bytes(row.value) == b"payload") for row in rows]

        blind = [one for one, _ in verdicts(load)]
        assert blind == [False, False, True, False] * 2 + [True, False, True]
        reported = verdicts(load.option("metadataServiceUri", three_uri))
        assert reported == [(True, True)] * 9 + [(False, True), (False, False)]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"validate": "crc"}, "validate='crc'.*none, header, digest"),
        ({"onCorruption": "ignore"}, "onCorruption='ignore'.*fail, skip, truncate"),
        ({"ledgers": "7-"}, "ledgers='7-'.*12,15-18"),
        ({"includValue": "true"}, "includvalue.*did you mean includeValue"),
        ({"maxPartitionBytes": "lots"}, "maxPartitionBytes='lots'.*4m"),
    ],
)
def test_wrong_options(spark: Any, tmp_path: Path, options: dict[str, str], said: str) -> None:
    """One line has the option, its value and the remedy."""
    path = tmp_path / "1.log"
    path.write_bytes(model.build([], closed=False))
    with pytest.raises(Exception, match=said):
        read(spark, path, **options)


def test_wrong_paths(spark: Any, tmp_path: Path) -> None:
    """A path that does not exist, and a file with another name."""
    with pytest.raises(Exception, match="nowhere does not exist on this machine"):
        read(spark, tmp_path / "nowhere")
    (tmp_path / "x.bin").write_bytes(b"")
    with pytest.raises(Exception, match=r"x\.bin is not named"):
        read(spark, tmp_path / "x.bin")
