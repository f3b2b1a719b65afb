"""The jobs audit, usage, diff and logscan on real bookies and files, in a real Spark session."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bookie.client import BookKeeper
from bookie.client.entries.digest import Digest
from bookie.spark.bkpipe import run
from tests.fixtures.bookies import BookieProcess
from tests.reference import entry_log as model
from tests.spark.planted import PAYLOAD, Planted, plant

pytestmark = [pytest.mark.interop, pytest.mark.leaks("the gateway to Spark opens connections of its own")]
FOUND = ("ledger_id", "difference", "columns")


@pytest.fixture
def run_job(capsys: pytest.CaptureFixture[str]) -> Callable[..., Any]:
    """Run a job; return its exit code and its summary."""

    def call(*words: str) -> tuple[int, dict[str, Any]]:
        code = run([*words, "-o", "json"])
        printed = capsys.readouterr()
        assert printed.out, printed.err
        return code, json.loads(printed.out)

    return call


def test_an_audit_finds_what_is_planted(
    spark: Any, three_bookies: list[BookieProcess], three_uri: str, run_job: Any, tmp_path: Path
) -> None:
    """BP-24: each finding is in the table, with sums in the report and exit code 3; a resumed audit does nothing."""
    planted = Planted(missing=[(1, 2)], flipped=[(2, 3)], extra=[(0, 9)])
    ids = plant(three_uri, three_bookies, 8101, 6, planted)
    plant(three_uri, three_bookies, 8102, 6, Planted())
    words = ["audit", "-u", three_uri, "--ledgers", "8101-8102", "--sample", "all", "--unit", "2", "--tasks", "1"]
    words += ["--to", str(tmp_path / "out"), "--state", str(tmp_path / "state"), "--format", "json"]
    code, planned = run_job(*words, "--dry-run")
    assert code == 0
    assert [row["ledgers"] for row in planned["units"]] == ["8101-8102"]
    assert not (tmp_path / "out").exists()
    code, summary = run_job(*words)
    assert (code, summary["findings"], summary["replicas"]) == (3, 3, 37)
    rows = spark.read.json(str(tmp_path / "out/findings")).collect()
    assert {(row.ledger_id, row.entry_id, row.bookie_id, row.status) for row in rows} == {
        (8101, 2, ids[1], "MISSING"),
        (8101, 3, ids[2], "DIGEST"),
        (8101, 9, ids[0], "EXTRA"),
    }
    assert {row["bookie"]: row["OK"] for row in summary["bookies"]} == {ids[0]: 12, ids[1]: 11, ids[2]: 11}
    report = (tmp_path / "out/report.html").read_text()
    assert "<svg" in report
    assert "MISSING" in report
    code, again = run_job(*words)
    assert (code, again["findings"], again["resumed_units"]) == (3, 3, 2)
    assert run_job(*words, "--ignore", "MISSING", "--ignore", "DIGEST", "--ignore", "EXTRA")[0] == 0


def test_usage_by_a_key(spark: Any, three_bookies: list[BookieProcess], three_uri: str, run_job: Any) -> None:
    """Bytes of closed ledgers, and the same times the write quorum."""
    plant(three_uri, three_bookies, 8111, 5, Planted(), application="weighed")
    code, summary = run_job("usage", "-u", three_uri, "--by", "application")
    row = next(row for row in summary["values"] if row["value"] == "weighed")
    assert code == 0
    assert row["bytes"] >= 50
    assert row["stored"] == 3 * row["bytes"]
    assert summary["ledgers"] >= row["ledgers"] >= 1


def test_usage_is_counted_once(
    spark: Any, three_bookies: list[BookieProcess], three_uri: str, run_job: Any, tmp_path: Path
) -> None:
    """The same call with its state repeats its result, whatever has changed since; with another key it is refused."""
    plant(three_uri, three_bookies, 8115, 5, Planted(), application="once")
    words = ["usage", "-u", three_uri, "--state", str(tmp_path / "state")]
    code, first = run_job(*words)
    assert (code, first["resumed_units"]) == (0, 0)
    plant(three_uri, three_bookies, 8116, 5, Planted(), application="once")
    code, again = run_job(*words)
    assert (code, again["resumed_units"], again["values"]) == (0, 1, first["values"])
    assert run_job(*words, "--dry-run")[1]["units"][0]["done"]
    assert run([*words, "--by", "else"]) == 1


def test_a_cluster_beside_itself_and_another(
    spark: Any, three_bookies: list[BookieProcess], three_uri: str, new_bookies: Any, run_job: Any, tmp_path: Path
) -> None:
    """It equals itself; a ledger of only one cluster and one that is longer in the other are reported."""
    plant(three_uri, three_bookies, 8121, 5, Planted())
    plant(three_uri, three_bookies, 8122, 5, Planted())
    words = ["diff", "-u", three_uri, "--ledgers", "8121-8122", "--to", str(tmp_path / "found")]
    assert run_job(*words, "--other", three_uri)[0] == 0
    [other] = new_bookies(1)
    other.start()
    uri = f"grpc://{other.admin}"
    plant(uri, [other], 8122, 6, Planted())
    code, summary = run_job(*words, "--other", uri)
    assert code == 3
    assert [(row["ledger_id"], row["difference"], row["columns"]) for row in summary["differences"]] == [
        (8121, "only_here", ""),
        (8122, "differs", "last_entry,length"),
    ]
    assert spark.read.json(str(tmp_path / "found")).count() == 2


def test_contents_beside_each_other(
    spark: Any, three_bookies: list[BookieProcess], three_uri: str, new_bookies: Any, run_job: Any, tmp_path: Path
) -> None:
    """Ledgers with equal metadata that differ in an entry are reported with the stretch, and so is an entry that no
    replica returns. Ledgers that differ already are not read; --percent reads a share of the ledgers; a resumed call
    reads nothing.
    """
    [other] = new_bookies(1)
    other.start()
    uri = f"grpc://{other.admin}"
    sides = ((three_uri, three_bookies[0]), (uri, other))
    for where, bookie in sides:
        plant(where, [bookie], 8141, 5000, Planted())
        plant(where, [bookie], 8142, 5000, Planted(missing=[(0, 4500)] if bookie is other else []))
        plant(where, [bookie], 8143, 5, Planted(flipped=[(0, 3)] if bookie is other else []))
        plant(where, [bookie], 8144, 6 if bookie is other else 5, Planted())
        plant(where, [bookie], 8145, 3, Planted(), payload=b"9876543210" if bookie is other else PAYLOAD)
        plant(where, [bookie], 8146, 0, Planted())
    words = ["diff", "-u", three_uri, "--other", uri, "--ledgers", "8141-8146", "--unit", "2"]
    words += ["--to", str(tmp_path / "found"), "--state", str(tmp_path / "state")]
    assert [row["ledger_id"] for row in run_job(*words[:9])[1]["differences"]] == [8144]
    code, summary = run_job(*words, "--content")
    rows = [(row["ledger_id"], row["difference"], row["columns"]) for row in summary["differences"]]
    assert rows == [
        (8144, "differs", "last_entry,length"),
        (8142, "content", "entries 4096 to 8191"),
        (8143, "content", "entries 0 to 4095"),
        (8145, "content", "entries 0 to 4095"),
    ]
    assert (code, summary["content"], summary["differs"]) == (3, 3, 1)
    assert (summary["ledgers_read"], summary["entries_read"]) == (4, 5000 + 5000 + 5 + 3)
    assert {tuple(row) for row in spark.read.json(str(tmp_path / "found")).select(*FOUND).collect()} == set(rows)
    assert run_job(*words, "--content")[1]["resumed_units"] == 5
    some = run_job(*words[:9], "--content", "--percent", "50")[1]
    assert 0 < some["ledgers_read"] < 4


def test_open_ledgers_beside_each_other(
    spark: Any, three_bookies: list[BookieProcess], three_uri: str, new_bookies: Any, run_job: Any
) -> None:
    """They are compared up to the entry that both have confirmed, which the result names. A difference below is
    reported, one after it is not, and their writers are not fenced.
    """
    [other] = new_bookies(1)
    other.start()
    uri = f"grpc://{other.admin}"
    sizes: dict[str, Any] = {"ensemble_size": 1, "write_quorum_size": 1, "ack_quorum_size": 1, "password": b"theirs"}
    contents = {8151: (b"abcde", b"abcdX"), 8152: (b"abcd", b"aXcd"), 8153: (b"abcde", b"abc"), 8154: (b"", b"")}
    with BookKeeper(three_uri) as here, BookKeeper(uri) as there:
        writers = [
            (bk.create_ledger_advanced(ledger, **sizes), sides[k])
            for k, bk in enumerate((here, there))
            for ledger, sides in contents.items()
        ]
        for writer, payloads in writers:
            for entry, byte in enumerate(payloads):
                writer.append(entry, bytes([byte]))
        closed, _ = writers[6]
        closed.close()
        words = ["diff", "-u", three_uri, "--other", uri, "--ledgers", "8151-8154", "--content", "--password", "wrong"]
        code, summary = run_job(*words)
        assert [(row["ledger_id"], row["difference"], row["columns"]) for row in summary["differences"]] == [
            (8153, "differs", "state,last_entry,length"),
            (8152, "content", "entries 0 to 4095"),
        ]
        assert (code, summary["ledgers_read"], summary["open_read"], summary["entries_read"]) == (3, 4, 4, 4 + 3 + 3)
        assert summary["open_compared_to"] == {"8151": 3, "8152": 2, "8153": 2, "8154": -1}
        for writer, payloads in writers:
            if writer is not closed:
                assert writer.append(len(payloads), b"more") == len(payloads)
                writer.close()


def test_logs_are_judged(
    spark: Any, three_bookies: list[BookieProcess], three_uri: str, run_job: Any, tmp_path: Path
) -> None:
    """Garbage is determined by the metadata; a log of nothing else is deletable unless it is damaged; damage is
    counted and reported.
    """
    plant(three_uri, three_bookies, 8131, 5, Planted())
    digest = Digest.of(password=b"")

    def entries(ledger: int) -> list[bytes]:
        return [digest.seal(ledger, k, b"x" * 100, lac=k - 1, length=100 * (k + 1)) for k in range(4)]

    bad = bytearray(model.build(entries(9_999_001), closed=True))
    bad[model.HEADER + 100] ^= 1
    files = {
        "1": model.build(entries(8131) + entries(9_999_001), closed=True),
        "2": model.build(entries(9_999_001), closed=True),
        "3": bytes(bad),
        "4": model.build(entries(8131), closed=False),
    }
    for name, data in files.items():
        (tmp_path / f"{name}.log").write_bytes(data)
    words = [
        "logscan",
        str(tmp_path),
        "-u",
        three_uri,
        "--to",
        str(tmp_path / "out"),
        "--state",
        str(tmp_path / "state"),
    ]
    assert [Path(row["log"]).stem for row in run_job(*words, "--dry-run")[1]["logs"]] == ["1", "2", "3"]
    code, summary = run_job(*words)
    rows = {Path(row["log"]).stem: row for row in summary["logs"]}
    assert code == 3
    assert {name: (row["garbage"], row["deletable"], row["bad"], row["entries"]) for name, row in rows.items()} == {
        "1": (0.5, False, 0, 8),
        "2": (1.0, True, 0, 4),
        "3": (1.0, False, 1, 4),
    }
    assert (summary["deletable"], summary["bad"], summary["lost"]) == (1, 1, 0)
    assert "<svg" in (tmp_path / "out/report.html").read_text()
    assert run_job(*words)[1]["resumed_units"] == 2


def test_what_could_not_be_read_is_looked_at_again(
    spark: Any, new_bookies: Any, run_job: Callable[..., Any], tmp_path: Path
) -> None:
    """A bookie that is down is not a loss: no repair is planned. When it is back, --again audits only its ledgers, out
    of those that are named; a second such call has nothing to do.
    """
    bookies = new_bookies(2)
    for bookie in bookies:
        bookie.start()
    uri = f"grpc://{bookies[0].admin}"
    for ledger in (1, 3, 4):
        plant(uri, bookies, ledger, 5, Planted())
    plant(uri, bookies[:1], 2, 5, Planted())
    words = ["-u", uri, "--sample", "all", "--format", "json", "--tasks", "1"]
    bookies[1].kill()
    code, away = run_job("audit", *words, "--to", str(tmp_path / "away"))
    (advice,) = away["remedies"]
    assert (code, away["findings"]) == (3, 15)
    assert "not a sign of data loss" in advice
    assert f"bkpipe audit --again {tmp_path / 'away'}" in advice
    code, planned = run_job(
        "rereplicate", "-u", uri, "--findings", str(tmp_path / "away"), "--to", str(tmp_path / "out"), "--dry-run"
    )
    assert (code, planned["ledgers"], planned["remedies"]) == (0, 0, [advice])
    bookies[1].start()
    words += ["--again", str(tmp_path / "away"), "--unit", "1", "--state", str(tmp_path / "state")]
    words += ["--to", str(tmp_path / "again"), "--ledgers", "2-9"]
    dry = run_job("audit", *words, "--dry-run")[1]
    assert [row["ledgers"] for row in dry["units"]] == ["3-3", "4-4"]
    code, summary = run_job("audit", *words)
    assert (code, summary["findings"], summary["replicas"], summary["remedies"]) == (0, 0, 20, [])
    assert run_job("audit", *words)[1]["resumed_units"] == 3
