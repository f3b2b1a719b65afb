"""Bookies with little free space pause longer between copies: real bookies on disks of different sizes.

The test is skipped with a reason if no small disk can be mounted.
"""

import asyncio
from pathlib import Path

import pytest

from bookie.client.replication.worker import ReplicationWorker
from tests.client.replication.conftest import GHOST, Cluster, comes_true, until
from tests.crash.small_disk import SmallDisk, Unavailable
from tests.fixtures.bookies import BookieProcess

pytestmark = [pytest.mark.crash, pytest.mark.leaks("gRPC keeps threads of its own for the life of the process")]
SMALL_BYTES = 96 << 20
PAUSE_MS = 200
PACED = {
    "diskWeightBasedPlacementEnabled": True,
    "weightPacedReplicationEnabled": True,
    "weightPacedReplicationMaxPauseMs": PAUSE_MS,
    "ensemblePlacementPolicy": "default",
}


class OnSmallDisk(BookieProcess):
    """A bookie whose ledgers are on a disk of its own."""

    disk: SmallDisk

    def command(self, *options: str) -> list[str]:
        """Return the command, run where the disk is mounted."""
        return self.disk.enter(super().command(*options))


def paused_ms(cluster: Cluster, name: str) -> int:
    """Return the pause of a worker with this name that copies one ledger, once it knows all free space."""
    one, two, *_ = cluster.ids
    ledger = asyncio.run(cluster.write([(0, (one, GHOST, two))], 3))
    cluster.driver.replication.mark(ledger, [GHOST], 1)

    async def work() -> int:
        async with cluster.environment(name, **PACED) as environment:
            await comes_true(lambda: len(environment.cluster.free_bytes) == len(cluster.ids) + 1)
            assert environment.cluster.free_bytes.keys() == environment.cluster.writable
            copied = comes_true(
                lambda: environment.counters.ledgers == 1 and cluster.driver.replication.holders() == {}
            )
            await until(ReplicationWorker(environment).run(), copied)
            return environment.counters.paused_ms

    return asyncio.run(work())


def test_a_bookie_with_little_room_lets_others_go_first(cluster: Cluster, tmp_path: Path) -> None:
    """The bookie on the small disk pauses nearly as long as possible, the others, with median space, hardly at all."""
    small = OnSmallDisk(tmp_path / "small", cluster.uri, {"zkTimeout": "4000"})
    small.ledgers.mkdir()
    try:
        with SmallDisk(small.ledgers, "tmpfs", SMALL_BYTES) as disk:
            small.disk = disk
            small.start()
            try:
                assert paused_ms(cluster, small.id) > PAUSE_MS * 0.9
                assert paused_ms(cluster, cluster.ids[0]) < PAUSE_MS * 0.1
            finally:
                small.stop()
    except Unavailable as reason:
        pytest.skip(f"NOT TESTED: {reason}")
