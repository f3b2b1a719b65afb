"""The job `rereplicate`: a bookie of a real cluster is lost and replaced; an audit finds nothing afterwards."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bookie.client import BookKeeper
from bookie.local import LocalCluster
from bookie.local.cluster import LocalBookie
from bookie.metadata import open_driver
from bookie.spark.bkpipe import run
from tests.spark.planted import Planted, plant

pytestmark = [
    pytest.mark.interop,
    pytest.mark.leaks("gRPC keeps its own threads and their descriptors as long as the process lives"),
]
pytest_plugins = ["bookie.local.fixtures"]

SIZES: dict[str, Any] = {"ensemble_size": 3, "write_quorum_size": 2, "ack_quorum_size": 2, "password": b""}


def ledger_of(bk: BookKeeper, count: int) -> int:
    """Write a closed ledger."""
    with bk.create_ledger(**SIZES) as ledger:
        for entry in range(count):
            ledger.append_async(b"%d" % entry)
    return int(ledger.id)


def test_a_bookie_is_lost_and_replaced(
    spark: Any, new_bookie_cluster: Callable[..., LocalCluster], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The plan has its ledgers; those that a worker holds or that are open are left over; the same call again does the
    rest, and every replica of every entry exists.
    """
    cluster = new_bookie_cluster(3)
    *_, lost = cluster
    words = ["rereplicate", "--to", str(tmp_path / "out"), "--state", str(tmp_path / "state"), "--tasks", "2"]
    words += ["--rate", "100m"]

    def run_job(job: str, *options: str) -> tuple[int, dict[str, Any]]:
        code = run([job, "-u", cluster.uri, "--format", "json", "-o", "json", *options])
        printed = capsys.readouterr()
        assert printed.out, printed.err
        return code, json.loads(printed.out)

    with BookKeeper(cluster.uri) as bk:
        whole, empty, short = (ledger_of(bk, count) for count in (300, 0, 7))
        with bk.create_ledger(**SIZES) as writer:
            writer.append(b"open")
            lost.stop()
            shutil.rmtree(lost.directory / "ledgers")
            (new,) = cluster.add()
            code, planned = run_job(*words, "--dry-run")
            (row,) = planned["bookies"]
            assert (code, planned["ledgers"]) == (0, 3)
            assert (row["bookie_id"], row["parts"], row["open"], row["entries"]) == (lost.id, 3, 1, 200 + 5)
            assert not (tmp_path / "out").exists()
            driver = open_driver(cluster.uri)
            driver.start()
            with driver.replication.lock(whole) as ours:
                assert ours
                code, summary = run_job(*words)
            driver.stop()
            assert (code, summary["locked"], summary["open"], summary["copied"]) == (3, 1, 1, 1)
            assert lost.id in bk.ledger_metadata(whole).segments[0].bookies
            code, summary = run_job(*words, "--fence-open")
            assert (code, summary["copied"], summary["complete"], summary["left"]) == (0, 2, 1, [])
        closed = (whole, short, writer.id)
        for one in closed:
            named = {bookie for part in bk.ledger_metadata(one).segments for bookie in part.bookies}
            assert new.id in named
            assert lost.id not in named
        with bk.open_ledger(whole, password=b"") as back:
            assert [bytes(entry.data) for entry in back.read(0, 299)] == [b"%d" % entry for entry in range(300)]
    code, audited = run_job("audit", "--to", str(tmp_path / "audit"), "--sample", "all")
    assert (code, audited["findings"], audited["replicas"]) == (0, 0, 2 * (300 + 7 + 1))
    assert "<svg" in (tmp_path / "out/report.html").read_text()
    plan = spark.read.json(str(tmp_path / "out/plan")).collect()
    assert {(part.ledger_id, part.bookie_id) for part in plan} == {(one, lost.id) for one in closed}
    assert empty not in {part.ledger_id for part in plan}
    moved = spark.read.json(str(tmp_path / "out/outcome")).where("state = 'copied'").collect()
    assert {bookie for one in moved for bookie in one.taken_by} <= {new.id}


def flip(bookie: LocalBookie, payload: bytes) -> None:
    """Flip one bit of an entry in the entry log of a bookie, which is restarted for that."""
    bookie.stop()
    places = [(path, path.read_bytes().find(payload)) for path in (bookie.directory / "ledgers").rglob("*.log")]
    ((path, at),) = [(path, at) for path, at in places if at >= 0]
    with path.open("r+b") as log:
        log.seek(at)
        log.write(bytes([payload[0] ^ 1]))
    bookie.start()


def test_what_an_audit_found_is_mended(
    spark: Any, new_bookie_cluster: Callable[..., LocalCluster], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A flipped bit, a missing entry, and one with another length than the other replicas are written to their bookies
    again, and remain correct over a restart. Extra entries are reported with what becomes of them. Nothing else of the
    ledgers changes, and a dry run changes nothing.
    """
    cluster = new_bookie_cluster(3)
    _, _, damaged = cluster
    bookies: Any = list(cluster)

    def run_job(job: str, *options: str) -> tuple[int, dict[str, Any]]:
        code = run([job, "-u", cluster.uri, "--format", "json", "-o", "json", *options])
        printed = capsys.readouterr()
        assert printed.out, printed.err
        return code, json.loads(printed.out)

    def audited(name: str) -> tuple[int, dict[str, Any]]:
        return run_job("audit", "--to", str(tmp_path / name), "--sample", "all")

    with BookKeeper(cluster.uri) as bk, bk.create_ledger(ensemble_size=3, write_quorum_size=3) as writer:
        for entry in range(300):
            writer.append_async(b"payload of entry %d." % entry)
    planted = Planted(missing=[(1, 2)], wrong_length=[(1, 3), (0, 5)], extra=[(0, 9)])
    plant(cluster.uri, bookies, writer.id + 1, 6, planted)
    flip(damaged, b"payload of entry 77.")
    before = audited("before")[1]
    assert before["findings"] == 5
    assert [one.partition(":")[0] for one in before["remedies"]] == ["4 MISSING DIGEST LENGTH", "1 EXTRA"]
    assert f"bkpipe rereplicate --findings {tmp_path / 'before'} rewrites them" in before["remedies"][0]
    words = ["rereplicate", "--findings", str(tmp_path / "before"), "--to", str(tmp_path / "out"), "--tasks", "1"]
    code, planned = run_job(*words, "--dry-run")
    rows = {(row["bookie_id"], row["parts"], row["entries"]) for row in planned["bookies"]}
    assert (code, rows) == (0, {(damaged.id, 1, 1), (bookies[1].id, 2, 2), (bookies[0].id, 1, 1)})
    assert planned["remedies"] == before["remedies"][1:]
    assert not (tmp_path / "out").exists()
    code, summary = run_job(*words)
    assert (code, summary["rewritten"], summary["copied"], summary["entries"]) == (0, 2, 0, 4)
    assert summary["remedies"] == before["remedies"][1:]
    plan = spark.read.json(str(tmp_path / "out/plan")).collect()
    assert {(part.ledger_id, part.first_entry, part.last_entry, part.bookie_id, part.finding) for part in plan} == {
        (writer.id, 77, 77, damaged.id, "DIGEST"),
        (writer.id + 1, 2, 2, bookies[1].id, "MISSING"),
        (writer.id + 1, 3, 3, bookies[1].id, "LENGTH"),
        (writer.id + 1, 5, 5, bookies[0].id, "LENGTH"),
    }
    assert audited("after")[1]["remedies"] == before["remedies"][1:]
    damaged.stop()
    damaged.start()
    code, summary = audited("restarted")
    assert (code, summary["findings"], summary["replicas"]) == (3, 1, 3 * 306 + 1)


def test_wrong_calls(
    spark: Any, bookie_cluster: LocalCluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A writable bookie is not lost, and a rate must be bytes: one line, and nothing is done."""
    one = next(iter(bookie_cluster))
    words = ["rereplicate", "-u", bookie_cluster.uri, "--to", str(tmp_path / "out")]
    assert run([*words, "--lost", one.id]) == 1
    assert f"bookie {one.id} is writable: stop it" in capsys.readouterr().err
    assert run([*words, "--rate", "fast"]) == 1
    assert "option rate='fast'" in capsys.readouterr().err
    assert run([*words, "--findings", str(tmp_path)]) == 1
    assert "has no table findings/: name the directory that bkpipe audit was given with --to" in capsys.readouterr().err
    assert run([*words, "--findings", str(tmp_path), "--lost", one.id]) == 1
    assert "--lost and --findings cannot be combined" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
