"""Lost replicas are copied beside auto-recovery: under its locks, and not where it is switched off."""

import asyncio

import pytest

from bookie.client.replication.restoring import Restored, restore
from bookie.errors import IllegalOperation
from tests.client.replication.conftest import GHOST, Cluster

pytestmark = pytest.mark.leaks("gRPC keeps threads of its own for the life of the process")


def restored(cluster: Cluster, *ledgers: int, lost: str = GHOST, fence: bool = False) -> list[Restored]:
    """What comes of each."""

    async def run() -> list[Restored]:
        async with cluster.world("bkpipe") as world:
            return [row async for row in restore(world, ledgers, frozenset({lost}), fence=fence)]

    return asyncio.run(run())


@pytest.mark.thorough
def test_nobody_is_fought(cluster: Cluster) -> None:
    """A ledger that a replicator holds is left to it, all are where copying is off; then it is copied, once, and the
    lock is free again; one that was deleted stops no other.
    """
    one, two, *_ = cluster.ids
    replication = cluster.driver.replication
    ledger = asyncio.run(cluster.write([(0, (one, GHOST, two))], 20))
    gone = asyncio.run(cluster.write([(0, (one, GHOST, two))], 3))
    cluster.driver.ledgers.delete(gone)
    replication.enable(enabled=False)
    assert [row.state for row in restored(cluster, ledger)] == ["off"]
    replication.enable(enabled=True)
    with replication.lock(ledger) as ours:
        assert ours
        assert [row.state for row in restored(cluster, ledger)] == ["held"]
        assert replication.holders().keys() == {ledger}
    (ensemble,) = cluster.bookies_of(ledger)
    assert GHOST in ensemble
    first, second = restored(cluster, gone, ledger)
    assert (first.state, second.state, second.entries) == ("gone", "copied", 21)
    metadata = cluster.wait_without(ledger, GHOST)
    assert second.taken_by == (metadata.segments[0].bookies[1],)
    cluster.holds(ledger, metadata)
    assert replication.holders() == {}
    assert [row.state for row in restored(cluster, ledger)] == ["whole"]


def test_an_open_ledger_is_fenced_when_told(cluster: Cluster) -> None:
    """Its last part stays as it is otherwise."""
    one, two, *_ = cluster.ids
    ledger = asyncio.run(cluster.write([(0, (one, GHOST, two))], 5, ack_quorum=2, closed=False))
    assert [row.state for row in restored(cluster, ledger)] == ["open"]
    assert cluster.driver.ledgers.read(ledger).value.state.name == "OPEN"
    assert [row.state for row in restored(cluster, ledger, fence=True)] == ["copied"]
    metadata = cluster.wait_without(ledger, GHOST)
    assert metadata.state.name == "CLOSED"
    cluster.holds(ledger, metadata)


def test_one_that_came_back_is_not_lost(cluster: Cluster) -> None:
    """It would get new ledgers while the old ones are copied."""
    one, two, *_ = cluster.ids
    ledger = asyncio.run(cluster.write([(0, (one, two))], 5))
    with pytest.raises(IllegalOperation, match=rf"bookie {one} is writable"):
        restored(cluster, ledger, lost=one)


def test_a_segment_that_is_lost_stops_no_other(cluster: Cluster) -> None:
    """What can be copied of the ledger is; then it is told what cannot."""
    one, two, *_ = cluster.ids
    ledger = asyncio.run(cluster.write([(0, (one, GHOST)), (5, (two, GHOST))], 9, holes=[3]))
    (row,) = restored(cluster, ledger)
    assert (row.state, row.entries) == ("failed", 8)
    assert f"ledger {ledger}, entry 3: no replica has a valid copy" in row.error
    assert [GHOST in ensemble for ensemble in cluster.bookies_of(ledger)] == [True, False]
