"""`bookie-server --init-cluster` creates a cluster once, in either store, and a bookie then starts in it."""

import subprocess
from collections.abc import Callable

import pytest

from tests.fixtures.bookies import BookieProcess
from tests.fixtures.ports import free_port
from tests.fixtures.zookeeper import ZooKeeperServer

Bookies = Callable[..., list[BookieProcess]]


def init_cluster(bookie: BookieProcess) -> subprocess.CompletedProcess[str]:
    return subprocess.run(bookie.command("--init-cluster"), capture_output=True, text=True, timeout=60, check=False)


def refusal(bookie: BookieProcess) -> str:
    """Return the single line with which the command fails, with nothing on standard output."""
    result = init_cluster(bookie)
    assert (result.returncode, result.stdout) == (1, ""), result
    assert "Traceback" not in result.stderr
    return result.stderr.splitlines()[-1]


@pytest.mark.interop
def test_a_cluster_in_zookeeper(new_bookies: Bookies, zookeeper: ZooKeeperServer) -> None:
    """Before it no bookie starts, and the error names the command; after it one does; a second call changes nothing."""
    root = zookeeper.new_root()
    (bookie,) = new_bookies(metadataServiceUri=f"zk+hierarchical://{zookeeper.address}{root}")
    assert bookie.run() == 1
    assert "bookie-server --init-cluster" in bookie.log_text()
    made = init_cluster(bookie)
    assert made.returncode == 0, made.stderr
    instance_id = made.stdout.split()[2]
    assert root in refusal(bookie)
    bookie.start()
    assert instance_id in (bookie.ledgers / "current/VERSION").read_text()


def test_a_cluster_in_the_embedded_store(new_bookies: Bookies) -> None:
    """The bookie would create it by itself; a cluster created before is kept."""
    (bookie,) = new_bookies()
    made = init_cluster(bookie)
    assert made.returncode == 0, made.stderr
    assert "already" in refusal(bookie)
    bookie.start()
    assert made.stdout.split()[2] in (bookie.ledgers / "current/VERSION").read_text()


def test_a_store_out_of_reach(new_bookies: Bookies) -> None:
    """One line names the key to check."""
    (bookie,) = new_bookies(metadataServiceUri=f"zk+hierarchical://127.0.0.1:{free_port()}/ledgers", zkTimeout="300")
    assert "metadataServiceUri" in refusal(bookie)
