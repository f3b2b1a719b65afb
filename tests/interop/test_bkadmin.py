"""bkadmin on a cluster of Apache BookKeeper's bookies, in ZooKeeper, beside upstream's own shell."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from bookie_admin.bkadmin.main import run
from tests.fixtures.bookies import BookieProcess
from tests.fixtures.java_peer import JavaPeer
from tests.interop.conftest import MakeJavaBookie

pytestmark = [
    pytest.mark.interop,
    pytest.mark.leaks("gRPC keeps its own threads and their descriptors as long as the process lives"),
]


@pytest.fixture
def bkadmin(capsys: pytest.CaptureFixture[str]) -> Callable[..., Any]:
    """Run bkadmin, check that it succeeded, and return what it wrote for programs."""

    def call(*words: object) -> Any:
        capsys.readouterr()
        code = run([*map(str, words), "-o", "json"])
        said = capsys.readouterr()
        assert code == 0, said.err
        return json.loads(said.out)

    return call


def test_a_cluster_from_its_first_day_to_its_last(
    java_bookie_at: MakeJavaBookie,
    java_peer: JavaPeer,
    zookeeper: Any,
    bookies: Callable[..., list[BookieProcess]],
    bkadmin: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """We lay a cluster out, Java's bookies serve it under load, a bookie of ours takes over the replicas of one,
    Java's tool
    lists that, and the cluster is removed.
    """
    uri = f"zk+hierarchical://{zookeeper.address}/bkadmin"
    monkeypatch.setenv("BOOKIE_METADATA_URI", uri)
    instance = bkadmin("initnewcluster")["instance_id"]
    lost, left = java_bookie_at(uri), java_bookie_at(uri)
    driven = bkadmin("bench", "--v2", "-d", 0.3, "-e", 2, "-w", 2, "--keep")
    assert [row["workload"] for row in driven["workloads"]] == ["add", "read", "batch"]
    assert all(row["entries"] > 0 and "error" not in row for row in driven["workloads"])
    (ledger,) = driven["ledgers"]
    written = bkadmin("ledgermetadata", ledger)["last_entry"] + 1
    assert bkadmin("bookiesanity", left.id)["state"] == "ok"
    (ours,) = bookies(1, metadataServiceUri=uri)
    lost.stop()
    (copied,) = bkadmin("recover", lost.id, "--yes", "--delete-cookie")["ledgers"]
    assert (copied["ledger"], copied["state"]) == (ledger, "copied")
    assert bkadmin("ledgermetadata", ledger)["segments"][0]["bookies"].count(ours.id) == 1
    assert bkadmin("readledger", ledger)["count"] == written
    reported = java_peer.shell(left.conf, "recover", "-f", "-q", ours.id)
    assert str(ledger) in reported
    assert ours.id in reported
    summed = bkadmin("clusterinfo")
    assert (summed["instance_id"], summed["bookies"], summed["writable"]) == (instance, 2, 2)
    ours.stop()
    left.stop()
    assert bkadmin("metaformat", "--yes")["old"] == instance
    assert bkadmin("clusterinfo")["bookies"] == 0
