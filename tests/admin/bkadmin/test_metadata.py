"""bkadmin metadata: a cluster of real bookies moves from the embedded store to etcd, and back, with its ledgers."""

import os
import select
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from bookie.client import BookKeeper
from bookie.local import LocalCluster
from bookie.local.etcd import LocalEtcd
from tests.admin.bkadmin.conftest import BkAdmin
from tests.fixtures.etcd import EtcdCluster
from tests.fixtures.frozen import freeze

pytestmark = pytest.mark.leaks("gRPC keeps its own threads and their descriptors as long as the process lives")


def write(uri: str, count: int) -> list[int]:
    """Write ledgers with a few entries each, and return their ids."""
    with BookKeeper(uri) as bk:
        ledgers = []
        for _ in range(count):
            with bk.create_ledger(ensemble_size=2) as ledger:
                for number in range(3):
                    ledger.append(b"%d-%d" % (ledger.id, number))
            ledgers.append(ledger.id)
        return ledgers


def read(uri: str, ledgers: list[int]) -> None:
    """Read what `write` has written."""
    with BookKeeper(uri) as bk:
        for one in ledgers:
            with bk.open_ledger(one) as ledger:
                found = [bytes(entry.data) for batch in ledger.batches() for entry in batch]
            assert found == [b"%d-%d" % (one, number) for number in range(3)]


@pytest.mark.thorough
def test_a_cluster_moves_to_etcd_and_back(etcd: EtcdCluster, tmp_path: Path, bkadmin: BkAdmin) -> None:
    """Bookies start on the copy, and all ledgers are read; new ones get new ids, and the way back is the same."""
    there = f"etcd://{etcd.addresses}{etcd.new_scope()}"
    here, again = f"lmdb://{tmp_path}/cluster/metadata", f"lmdb://{tmp_path}/again"
    with LocalCluster(2, directory=tmp_path / "cluster", journalSyncData=False) as cluster:
        ledgers = write(cluster.uri, 5)
        refused = bkadmin("metadata", "copy", cluster.uri, there, "--yes")
        assert refused.code == 1
        assert "can be written to" in refused.err
    for target in (there, again):
        shown = bkadmin("metadata", "copy", here, target, "--dry-run", "-o", "json")
        assert shown.code == 0, shown.err
    assert not (tmp_path / "again").exists()
    copied = bkadmin("metadata", "copy", here, there, "--yes", "-o", "json")
    assert copied.code == 0, copied.err
    assert copied.json["cookies"] == 2
    assert bkadmin("metadata", "compare", here, there).code == 0
    with LocalCluster(2, directory=tmp_path / "cluster", metadata_service_uri=there, journalSyncData=False) as cluster:
        read(there, ledgers)
        more = write(there, 2)
        assert not set(more) & set(ledgers)
        ledgers += more
        running = bkadmin("metadata", "copy", here, there, "--yes")
        assert running.code == 1
        assert "of the target is running" in running.err
    differing = bkadmin("metadata", "compare", here, there, "-o", "json")
    assert differing.code == 1
    assert {row["name"] for row in differing.json["differences"] if row["what"] == "ledger"} == set(map(str, more))
    assert bkadmin("metadata", "copy", here, there, "--yes").code == 1
    back = bkadmin("metadata", "copy", there, again, "--yes")
    assert back.code == 0, back.err
    shutil.rmtree(tmp_path / "cluster" / "metadata")
    (tmp_path / "again").rename(tmp_path / "cluster" / "metadata")
    with LocalCluster(2, directory=tmp_path / "cluster", journalSyncData=False) as cluster:
        read(cluster.uri, ledgers)


@pytest.mark.thorough
def test_a_copy_that_is_killed(etcd: EtcdCluster, tmp_path: Path, bkadmin: BkAdmin) -> None:
    """The copy is killed again and again; no bookie can start on it before it is complete, then nothing is missing."""
    there = f"etcd://{etcd.addresses}{etcd.new_scope()}"
    here = f"lmdb://{tmp_path}/cluster/metadata"
    with LocalCluster(2, directory=tmp_path / "cluster", journalSyncData=False) as cluster:
        ledgers = write(cluster.uri, 100)
    command = [sys.executable, "-m", "bookie_admin.bkadmin.main", "metadata", "copy", here, there, "--yes"]
    for wait_s in (0.3, 0.6, 0.7, 0.8, 0.9, 1.0):
        with subprocess.Popen(command, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}) as copying:
            try:
                copying.wait(wait_s)
            except subprocess.TimeoutExpired:
                copying.send_signal(signal.SIGKILL)
    copied = bkadmin("metadata", "copy", here, there, "--yes")
    assert copied.code == 0, copied.err
    with LocalCluster(2, directory=tmp_path / "cluster", metadata_service_uri=there, journalSyncData=False):
        read(there, ledgers)


@pytest.mark.thorough
@pytest.mark.usefixtures("etcd")
def test_a_cluster_with_its_own_etcd(tmp_path: Path) -> None:
    """A development cluster keeps its metadata in etcd over a restart; etcd ends with it."""
    with LocalCluster(2, directory=tmp_path, metadata="etcd", journalSyncData=False) as cluster:
        assert cluster.uri.startswith("etcd://")
        ledgers = write(cluster.uri, 2)
    with LocalCluster(2, directory=tmp_path, metadata="etcd", journalSyncData=False) as cluster:
        read(cluster.uri, ledgers)


@pytest.mark.thorough
@pytest.mark.usefixtures("etcd")
def test_an_etcd_that_hangs_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It ends although it does not react, and a second stop does nothing."""
    monkeypatch.setattr("bookie.local.etcd.STOP_S", 0.5)
    member = LocalEtcd(tmp_path)
    member.start()
    url = f"http://{member.address}".encode()
    lines = {int(one.parent.name): one.read_bytes().split(b"\0") for one in Path("/proc").glob("[0-9]*/cmdline")}
    (pid,) = [pid for pid, words in lines.items() if url in words and words[0].endswith(b"/etcd")]
    descriptor = os.pidfd_open(pid)
    freeze(pid)
    member.stop()
    assert select.select([descriptor], [], [], 60)[0]
    os.close(descriptor)
    member.stop()
