"""bkadmin changes clusters of real bookies: it copies ledgers, renames bookies, edits and deletes metadata."""

from collections.abc import Callable
from pathlib import Path

import pytest

from bookie.client import BookKeeper
from bookie.local import LocalCluster
from bookie_admin.bkadmin.catalogue import INSTEAD
from bookie_admin.bkadmin.loading import Latencies
from tests.admin.bkadmin.conftest import BkAdmin

pytestmark = pytest.mark.leaks("gRPC keeps its own threads and their descriptors as long as the process lives")
pytest_plugins = ["bookie.local.fixtures"]

Clusters = Callable[..., LocalCluster]


@pytest.mark.thorough
def test_what_a_stopped_bookie_holds_is_copied(
    new_bookie_cluster: Clusters, bkadmin: BkAdmin, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """`recover` works without an auditor, and can only list. Dumped metadata can be restored."""
    cluster = new_bookie_cluster(3)
    monkeypatch.setenv("BOOKIE_METADATA_URI", cluster.uri)
    summed = bkadmin("clusterinfo", "-o", "json").json
    assert (summed["bookies"], summed["writable"], summed["absent"], summed["auditor"]) == (3, 3, 0, None)
    sane = bkadmin("bookiesanity", "bookie-2", "-o", "json")
    assert sane.code == 0, sane.err
    ledger = bkadmin("simpletest", "-e", 2, "-n", 30, "--keep", "-o", "json").json["ledger"]
    ensemble = bkadmin("ledgermetadata", ledger, "-o", "json").json["segments"][0]["bookies"]
    gone = next(one for one in cluster.bookies[1:] if one.id in ensemble)
    (other,) = {one.id for one in cluster} - set(ensemble)
    assert bkadmin("recover", gone.id, "--yes").code == 1  # it is writable
    listed = bkadmin("recover", gone.id, "-q", "-o", "json").json["ledgers"]
    assert [(row["ledger"], row["state"]) for row in listed] == [(ledger, "to copy")]
    assert gone.stop() == 0
    assert bkadmin("recover", gone.id).code == 1  # nobody can answer the question
    would = bkadmin("decommissionbookie", gone.id, "--dry-run", "-o", "json").json
    assert would == {"ledgers": [{"ledger": ledger, "blocked": None}], "to_copy": 1, "blocked": 0}
    assert bkadmin("listunderreplicated", "--count").out.strip().endswith("0")
    done = bkadmin("recover", gone.id, "--yes", "--delete-cookie", "-o", "json")
    assert (done.code, done.json["failed"], done.json["cookies_deleted"]) == (0, 0, [gone.id]), done.err
    moved = bkadmin("ledgermetadata", ledger, "-o", "json").json["segments"][0]["bookies"]
    assert set(moved) == {other, *ensemble} - {gone.id}
    assert bkadmin("readledger", ledger, "-o", "json").json["count"] == 30

    file = tmp_path / "metadata"
    assert bkadmin("ledgermetadata", ledger, "-dumptofile", file).code == 0
    words = ("updatebookieinledger", "-sb", other, "-db", "elsewhere:3181", "-o", "json")
    assert bkadmin(*words, "--dry-run").json == {"changed": 0, "to_change": 1, "ledgers": 1}
    assert bkadmin(*words, "--yes").json["changed"] == 1
    assert "elsewhere:3181" in bkadmin("ledgermetadata", ledger).out
    failed = bkadmin("recover", "elsewhere:3181", "--yes", "-o", "json")
    assert failed.code == 0, failed.err  # the other replica is complete
    assert bkadmin("ledgermetadata", ledger, "-restorefromfile", file, "-update", "--yes").code == 0
    assert bkadmin("ledgermetadata", ledger, "-o", "json").json["segments"][0]["bookies"] == moved
    assert bkadmin("ledgermetadata", ledger, "-restorefromfile", file).code == 1  # it exists


def test_logs_are_shown_and_go(new_bookie_cluster: Clusters, bkadmin: BkAdmin) -> None:
    """The ledgers and writers of a log are shown; a writer is forgotten and a log deleted only when confirmed."""
    uri = ("-u", new_bookie_cluster(1).uri, "-o", "json")
    assert bkadmin("logs", *uri).json == {"logs": []}
    with BookKeeper(uri[1]) as bk:
        bk.logs.append("a/b", [3, 1], ("query", 4))
    assert bkadmin("logs", *uri).json == {"logs": [{"log": "a/b", "ledgers": 2}]}
    assert bkadmin("logs", "show", "a/b", *uri).json["writers"] == {"query": 4}
    assert bkadmin("logs", "forget", "a/b", *uri).code == 2
    would = bkadmin("logs", "forget", "a/b", "query", "--dry-run", *uri).json
    assert would == {"dry_run": "would forget how far writer query got in log a/b"}
    assert bkadmin("logs", "forget", "a/b", "query", "--yes", *uri).code == 0
    shown = bkadmin("logs", "show", "a/b", *uri).json
    assert (shown["writers"], [row["ledger"] for row in shown["ledgers"]]) == ({}, [3, 1])
    assert bkadmin("logs", "delete", *uri).code == 2
    assert bkadmin("logs", "delete", "a/b", *uri).code == 1
    assert bkadmin("logs", "delete", "a/b", "--dry-run", *uri).code == 0
    assert bkadmin("logs", "delete", "a/b", "--yes", *uri).code == 0
    assert bkadmin("logs", "show", "a/b", *uri).code == 1


@pytest.mark.thorough
def test_load_is_driven_and_told(new_bookie_cluster: Clusters, bkadmin: BkAdmin) -> None:
    """All three workloads run at full speed and by awaited calls, on ledgers that are deleted afterwards, or kept and
    read again. An entry that does not fit is an error of its workload.
    """
    uri = new_bookie_cluster(1).uri
    small = ("-d", "0.2", "-e", 1, "-w", 1, "-a", 1, "--entry-size", 100, "-u", uri, "-o", "json")
    first = bkadmin("bench", "-l", 2, "--keep", *small)
    assert first.code == 0, first.err
    rows = {row["workload"]: row for row in first.json["workloads"]}
    assert list(rows) == ["add", "read", "batch"]
    for row in rows.values():
        assert min(row["entries"], row["entries_per_s"], row["mb_per_s"], row["awaited_per_s"]) > 0
        assert row["p50_ms"] <= row["p99_ms"] <= row["max_ms"]
    kept = first.json["ledgers"]
    again = bkadmin("bench", "-t", "batch", "--v2", "--read-ledger", kept[0], *small).json
    assert [row["workload"] for row in again["workloads"]] == ["batch"]
    assert bkadmin("bench", "-t", "add", "--digest", "HMAC", *small).json["ledgers"] == []
    assert [row["ledger"] for row in bkadmin("listledgers", "-u", uri, "-o", "json").json["ledgers"]] == kept
    large = bkadmin("bench", *small, "--entry-size", 5 << 20)
    assert (large.code, [row["workload"] for row in large.json["workloads"]]) == (3, ["add"])
    assert "raise nettyMaxFrameSizeBytes" in large.json["workloads"][0]["error"]
    lacking = bkadmin("bench", *small, "-e", 2, "-w", 2)
    assert (lacking.code, lacking.out) == (1, "")


def test_latencies_are_counted_in_bounded_memory() -> None:
    """Quantiles are within 3 % of the exact values, and never above the maximum."""
    found = Latencies()
    assert found.quantile_ms(0.5) is None
    for number in range(1, 1001):
        found.note(number / 1000)
    assert found.quantile_ms(0.5) == pytest.approx(500, rel=0.03)
    assert found.quantile_ms(0.999) == pytest.approx(999, rel=0.03)
    assert found.quantile_ms(1) == 1000


def test_a_cluster_and_its_bookies_are_wiped(
    new_bookie_cluster: Clusters, bkadmin: BkAdmin, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """This needs that no bookie is registered, that the right cluster is named, and a confirmation."""
    cluster = new_bookie_cluster(1, directory=tmp_path)
    bookie = cluster.bookies[0]
    old = bkadmin("whatisinstanceid", "-u", cluster.uri, "-o", "json").json["instance_id"]
    refused = bkadmin("metaformat", "-u", cluster.uri, "--yes")
    assert (refused.code, "registered" in refused.err) == (1, True)
    assert bkadmin("bookieformat", "--conf", bookie.conf, "--yes").code == 1  # its directories are in use
    cluster.stop()
    monkeypatch.setenv("BOOKIE_METADATA_URI", f"lmdb://{tmp_path}/metadata")
    monkeypatch.setenv("BOOKIE_CONF", str(bookie.conf))
    assert bkadmin("updatecookie", "-l").code == 0
    assert bkadmin("updatecookie", "-e").code == 2
    text = bookie.conf.read_text()
    bookie.conf.write_text(text.replace("bookieId=bookie-1", "bookieId=renamed"))
    assert bkadmin("updatecookie", "-b", "--old", "bookie-1", "--yes").code == 0
    assert 'bookieHost: "renamed"' in bkadmin("cookie_get", "renamed").out
    assert bkadmin("updatecookie", "-l").code == 0
    assert bkadmin("bookieformat", "--dry-run", "-o", "json").json["deleted"] is False
    assert bookie.directory.joinpath("ledgers/current/VERSION").exists()
    assert bkadmin("bookieformat", "--yes", "-d").code == 0
    assert not bookie.directory.joinpath("ledgers/current").exists()
    assert bkadmin("nukeexistingcluster", "-i", "another", "--yes").code == 1
    assert bkadmin("metaformat", "--dry-run", "-o", "json").json == {"instance_id": old}
    assert bkadmin("metaformat", "-n").code == 2
    new = bkadmin("metaformat", "--yes", "-o", "json").json
    assert (new["old"], new["instance_id"] != old) == (old, True)
    assert bkadmin("initbookie").code == 0
    assert bkadmin("initbookie").code == 1  # it is no longer new
    assert bkadmin("nukeexistingcluster", "-i", new["instance_id"], "--yes").code == 0
    assert bkadmin("whatisinstanceid").code == 1


@pytest.mark.parametrize("name", INSTEAD)
def test_commands_of_other_storages_say_what_to_use(bkadmin: BkAdmin, name: str) -> None:
    """They print one line, with the exit code of an invalid command line."""
    done = bkadmin(name, "--help")
    assert (done.code, done.out) == (2, "")
    assert INSTEAD[name] in " ".join(done.err.split())
