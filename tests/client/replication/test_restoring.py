"""Lost replicas are copied beside auto-recovery, under its locks, and not while it is disabled."""

import asyncio

import pytest

from bookie.client.replication.restoring import Restored, restore
from bookie.errors import IllegalOperation
from tests.client.replication.conftest import GHOST, Cluster

pytestmark = pytest.mark.leaks("gRPC keeps threads of its own for the life of the process")


def restored(cluster: Cluster, *ledgers: int, lost: str = GHOST, fence: bool = False) -> list[Restored]:
    """Return the result for each ledger."""

    async def run() -> list[Restored]:
        async with cluster.environment("bkpipe") as environment:
            return [row async for row in restore(environment, ledgers, frozenset({lost}), fence=fence)]

    return asyncio.run(run())


@pytest.mark.thorough
def test_nobody_is_fought(cluster: Cluster) -> None:
    """A ledger that a worker has locked is left to it, and nothing is copied while replication is disabled.

    Then the ledger is copied, once, and its lock is free again; a deleted ledger stops no other.
    """
    one, two, *_ = cluster.ids
    replication = cluster.driver.replication
    ledger = asyncio.run(cluster.write([(0, (one, GHOST, two))], 20))
    gone = asyncio.run(cluster.write([(0, (one, GHOST, two))], 3))
    cluster.driver.ledgers.delete(gone)
    replication.enable(enabled=False)
    assert [row.state for row in restored(cluster, ledger)] == ["disabled"]
    replication.enable(enabled=True)
    with replication.lock(ledger) as ours:
        assert ours
        assert [row.state for row in restored(cluster, ledger)] == ["locked"]
        assert replication.holders().keys() == {ledger}
    (ensemble,) = cluster.bookies_of(ledger)
    assert GHOST in ensemble
    first, second = restored(cluster, gone, ledger)
    assert (first.state, second.state, second.entries) == ("deleted", "copied", 21)
    metadata = cluster.wait_without(ledger, GHOST)
    assert second.taken_by == (metadata.segments[0].bookies[1],)
    cluster.holds(ledger, metadata)
    assert replication.holders() == {}
    assert [row.state for row in restored(cluster, ledger)] == ["complete"]


def test_an_open_ledger_is_fenced_when_told(cluster: Cluster) -> None:
    """An open ledger is fenced if requested; otherwise its last part stays as it is."""
    one, two, *_ = cluster.ids
    ledger = asyncio.run(cluster.write([(0, (one, GHOST, two))], 5, ack_quorum=2, closed=False))
    assert [row.state for row in restored(cluster, ledger)] == ["open"]
    assert cluster.driver.ledgers.read(ledger).value.state.name == "OPEN"
    assert [row.state for row in restored(cluster, ledger, fence=True)] == ["copied"]
    metadata = cluster.wait_without(ledger, GHOST)
    assert metadata.state.name == "CLOSED"
    cluster.holds(ledger, metadata)


def test_one_that_came_back_is_not_lost(cluster: Cluster) -> None:
    """A bookie that is writable again is refused, since it would get new ledgers while old ones are copied."""
    one, two, *_ = cluster.ids
    ledger = asyncio.run(cluster.write([(0, (one, two))], 5))
    with pytest.raises(IllegalOperation, match=rf"bookie {one} is writable"):
        restored(cluster, ledger, lost=one)


def test_a_segment_that_is_lost_stops_no_other(cluster: Cluster) -> None:
    """All other segments of the ledger are copied, and then the error is raised."""
    one, two, *_ = cluster.ids
    ledger = asyncio.run(cluster.write([(0, (one, GHOST)), (5, (two, GHOST))], 9, holes=[3]))
    (row,) = restored(cluster, ledger)
    assert (row.state, row.entries) == ("failed", 8)
    assert f"ledger {ledger}, entry 3: no replica has a valid copy" in row.error
    assert [GHOST in ensemble for ensemble in cluster.bookies_of(ledger)] == [True, False]
