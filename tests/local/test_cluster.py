"""A cluster on this machine, as programs and their tests use it."""

import json
import os
import select
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest

from bookie.client import BookKeeper
from bookie.errors import IncorrectParameter, StartRefused
from bookie.local import LocalCluster
from bookie_admin.bkadmin.main import run

pytestmark = pytest.mark.leaks("gRPC keeps its own threads and their descriptors as long as the process lives")
pytest_plugins = ["bookie.local.fixtures"]

Clusters = Callable[..., LocalCluster]


def test_bookies_come_and_go(new_bookie_cluster: Clusters) -> None:
    """Data is read while a bookie is down; it comes back at its address with its data; an added bookie is found."""
    cluster = new_bookie_cluster(2, journalSyncData=False)
    first, last = cluster
    assert "journalSyncData=false" in first.conf.read_text()
    with BookKeeper(cluster.uri) as bk:
        with bk.create_ledger(ensemble_size=2) as ledger:
            ledger.append(b"entry")
        address, pid = last.address, last.pid
        last.kill()
        assert last.pid is None
        last.start()
        assert (last.address, last.pid != pid) == (address, True)
        first.signal(signal.SIGSTOP)
        first.signal(signal.SIGCONT)
        (third,) = cluster.add()
        assert bk.bookies() == {first.id, last.id, third.id}
        with bk.open_ledger(ledger.id) as handle:
            assert [bytes(entry.data) for batch in handle.batches() for entry in batch] == [b"entry"]
    assert (third.stop(), third.stop()) == (0, 0)
    cluster.stop()
    assert not any(one.directory.exists() for one in cluster)
    cluster.stop()


@pytest.mark.thorough
def test_a_stop_that_fails_ends_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """If one bookie cannot be stopped, that is raised after the others have ended and the directory is removed."""
    with LocalCluster(3) as cluster:
        first, middle, last = cluster
        broken = middle.stop
        pids = [os.pidfd_open(one.pid or 0) for one in cluster]

        def fails() -> int:
            broken()
            raise OSError("cannot be stopped")

        monkeypatch.setattr(middle, "stop", fails)
        with pytest.raises(OSError, match="cannot be stopped"):
            cluster.stop()
        assert [select.select([pid], [], [], 60)[0] for pid in pids] == [[pid] for pid in pids]
        for pid in pids:
            os.close(pid)
        assert (first.pid, last.pid) == (None, None)
        assert not first.directory.parent.exists()
        monkeypatch.undo()


def test_a_start_that_is_refused_leaves_nothing_behind(tmp_path: Path) -> None:
    """The error has the line of the bookie's log that says why, and the other bookies are stopped."""
    with pytest.raises(StartRefused, match=r"bookie-1 did not start.*flushInterval"):
        LocalCluster(2, directory=tmp_path, flushInterval="never").start()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(StartRefused) as refused:
            LocalCluster(1, directory=tmp_path / "other", port=port).start()
    assert str(refused.value).startswith(f"bookie-1 did not start: bookiePort={port}: ")
    assert "level=" not in str(refused.value)
    with pytest.raises(IncorrectParameter, match="at least one"):
        LocalCluster(0)


def test_bookies_end_with_who_started_them(tmp_path: Path) -> None:
    """No process is left on the machine, even if the process that started the bookies is killed."""
    program = (
        "import sys; from bookie.local import LocalCluster; c = LocalCluster(1, directory=sys.argv[1]).start();"
        "print(c.bookies[0].pid, flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as owner:
        assert owner.stdout
        bookie = os.pidfd_open(int(owner.stdout.readline()))
        owner.kill()
    try:
        assert select.select([bookie], [], [], 60)[0]  # it is not our child, so its pidfd reports its end
    finally:
        os.close(bookie)


def test_standalone_runs_until_it_is_told_to_end(tmp_path: Path) -> None:
    """`bkadmin standalone` prints its addresses and serves the console, and Ctrl-C ends it with 0; data stays if a
    directory was given.
    """
    assert run(["standalone", "-s", "flushInterval"]) == 2
    command = [
        sys.executable,
        "-m",
        "bookie_admin.bkadmin.main",
        "standalone",
        "-n",
        "1",
        "-p",
        "0",
        "-d",
        str(tmp_path),
    ]
    with subprocess.Popen(
        [*command, "-o", "json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout
        assert process.stderr
        assert process.stderr.readline() == "press Ctrl-C to stop\n"
        said = "".join(iter(process.stdout.readline, "}\n")) + "}"
        with urllib.request.urlopen(json.loads(said)["console"]) as page:  # noqa: S310 - it is http
            assert b"<title>" in page.read()
        os.kill(process.pid, signal.SIGINT)
        assert process.stderr.read() == "stopping\n"
    assert process.returncode == 0
    assert (tmp_path / "bookie-1/ledgers/current").is_dir()
    assert '"metadata_service_uri": "grpc://127.0.0.1:' in said
