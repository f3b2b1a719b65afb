"""A whole cluster with its metadata in etcd: bookies, writers, recovery and auto-recovery while members are lost."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from bookie.client import BookKeeper
from bookie.metadata import open_driver
from tests.fixtures.bookies import BookieProcess
from tests.fixtures.etcd import EtcdCluster
from tests.metadata.seen import Seen

pytestmark = pytest.mark.leaks("gRPC keeps threads of its own for the life of the process")

ENTRIES = 200
RECOVERY = {
    "autoRecoveryDaemonEnabled": "true",
    "lostBookieRecoveryDelay": "0",
    "auditorPeriodicBookieCheckInterval": "1",
}


@pytest.fixture
def uri(three_etcds: EtcdCluster) -> str:
    """The metadata service URI of a new cluster."""
    found = f"etcd://{three_etcds.addresses}/ledgers"
    driver = open_driver(found)
    driver.start()
    driver.cluster.initialize()
    driver.stop()
    return found


@pytest.fixture
def four(uri: str, tmp_path: Path) -> Iterator[list[BookieProcess]]:
    """Four running bookies with auto-recovery."""
    made = [BookieProcess(tmp_path / f"bookie-{number}", uri, RECOVERY) for number in range(4)]
    for bookie in made:
        bookie.start()
    yield made
    for bookie in made:
        bookie.kill()


@pytest.mark.thorough
def test_a_cluster_lives(uri: str, four: list[BookieProcess], three_etcds: EtcdCluster) -> None:
    """Entries are written while a member of etcd hangs and another is replaced as leader, and outlive a lost bookie."""
    with BookKeeper(uri) as bk:
        with bk.create_ledger(password=b"secret") as ledger:
            for number in range(ENTRIES):
                if number % 50 == 25:
                    three_etcds.members[number // 50 % 3].freeze()
                ledger.append(f"entry {number}".encode())
                if number % 50 == 49:
                    three_etcds.members[number // 50 % 3].thaw()
        with bk.open_ledger(ledger.id, password=b"secret") as reader:
            assert [bytes(entry) for entry in reader.read(0, ENTRIES - 1)] == [
                f"entry {number}".encode() for number in range(ENTRIES)
            ]
            ensembles = reader.metadata.segments
    lost = next(bookie for bookie in four if bookie.id in ensembles[0].bookies)
    lost.kill()
    driver = open_driver(uri)
    driver.start()
    try:
        seen = Seen()
        driver.ledgers.watch(ledger.id, seen)
        seen.wait_for(lambda found: lost.id not in found.value.segments[0].bookies, "that the copies are replaced")
        assert driver.election.auditor() is not None
    finally:
        driver.stop()
    with BookKeeper(uri) as bk, bk.open_ledger(ledger.id, password=b"secret") as reader:
        assert len(reader.read(0, ENTRIES - 1)) == ENTRIES
