"""A ledger that no recovery can close is closed by force, after it was said exactly what is lost."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from bookie.client.bookies import BookieClient
from bookie.client.replication.forcing import READS_IN_FLIGHT, Loss, close_by_force, what_is_lost
from bookie.client.replication.worker import ReplicationWorker
from bookie.errors import IllegalOperation, LedgerRecoveryError
from bookie.metadata.records.ledger_metadata import LedgerState
from tests.client.replication.conftest import GHOST, SIZE, Cluster, comes_true, until

pytestmark = [
    pytest.mark.leaks("gRPC keeps threads of its own for the life of the process"),
    pytest.mark.thorough,
]

GHOSTS = (GHOST, "10.255.255.2:3181")


def striped(cluster: Cluster, last: int, bookies: Sequence[str]) -> int:
    """Write an open ledger, each entry of which is on two of three bookies that must both have acknowledged it."""
    return asyncio.run(cluster.write([(0, bookies)], last, write_quorum=2, ack_quorum=2, closed=False))


def forced(cluster: Cluster, ledger: int) -> Loss:
    """Return what is lost, and close the ledger."""

    async def run() -> Loss:
        async with cluster.environment() as environment:
            with pytest.raises(LedgerRecoveryError):
                await environment.ledgers.recover(ledger)
            loss = await what_is_lost(environment, ledger)
            assert await close_by_force(environment, loss) == loss
            return loss

    return asyncio.run(run())


def test_what_is_left_is_kept(cluster: Cluster) -> None:
    """The entry at the LAC is lost, a later one is not: the ledger ends there, and is marked for auto-recovery."""
    one = cluster.ids[0]
    ledger = striped(cluster, 5, (one, *GHOSTS))
    assert forced(cluster, ledger) == Loss(ledger, GHOSTS, 4, 5, 6 * SIZE, ((1, 1), (4, 4)), more_possible=True)
    metadata = cluster.driver.ledgers.read(ledger).value
    assert (metadata.state, metadata.last_entry, metadata.length) == (LedgerState.CLOSED, 5, 6 * SIZE)
    marked = cluster.driver.replication.marked(ledger)
    assert marked is not None
    assert set(marked.missing) == set(GHOSTS)


def test_a_lost_end_is_cut_off(cluster: Cluster) -> None:
    """Where nothing is left of the last segment, the ledger ends with what is left before it."""
    one, two, *_ = cluster.ids
    segments = [(0, (one, two)), (6, GHOSTS)]
    ledger = asyncio.run(cluster.write(segments, 9, ack_quorum=2, closed=False))
    loss = forced(cluster, ledger)
    assert (loss.last_confirmed, loss.last_entry, loss.lost, loss.more_possible) == (5, 5, (), True)
    assert cluster.driver.ledgers.read(ledger).value.last_entry == 5


def test_what_is_left_is_copied(cluster: Cluster) -> None:
    """After a forced close that lost no entry, auto-recovery replaces the bookies that are gone."""
    one = cluster.ids[0]
    ledger = asyncio.run(cluster.write([(0, (one, *GHOSTS))], 7, ack_quorum=2, closed=False))
    assert forced(cluster, ledger).lost == ()

    async def copy() -> None:
        async with cluster.environment() as environment:
            await until(ReplicationWorker(environment).run(), comes_true(lambda: environment.counters.ledgers == 1))

    asyncio.run(copy())
    cluster.holds(ledger, cluster.wait_without(ledger, GHOST))


def test_what_needs_no_force_is_refused(cluster: Cluster) -> None:
    """A closed ledger, and one that a recovery can close, even if one of its bookies is gone."""
    one, two, three, _ = cluster.ids
    closed = asyncio.run(cluster.write([(0, (one, two))], 5))
    healthy = striped(cluster, 5, (one, two, three))
    enough = asyncio.run(cluster.write([(0, (one, GHOST, two))], 5, ack_quorum=2, closed=False))

    async def run() -> None:
        async with cluster.environment() as environment:
            with pytest.raises(IllegalOperation, match="is closed already, at entry 5"):
                await what_is_lost(environment, closed)
            for ledger in (healthy, enough):
                with pytest.raises(IllegalOperation, match="a recovery can close it"):
                    await what_is_lost(environment, ledger)
                assert cluster.driver.ledgers.read(ledger).value.state is LedgerState.OPEN
                await environment.ledgers.recover(ledger)

    asyncio.run(run())


@pytest.mark.thorough
def test_a_bookie_that_does_not_answer_is_not_gone(cluster: Cluster) -> None:
    """It may hold what looks lost, so it must answer, or be stopped for good."""
    one = cluster.ids[0]
    stuck = cluster.processes[1]
    ledger = striped(cluster, 5, (one, stuck.id, GHOST))

    async def run() -> None:
        async with cluster.environment(readEntryTimeoutSec=1) as environment:
            stuck.freeze()
            try:
                with pytest.raises(IllegalOperation, match="is registered and may have entries that look lost"):
                    await what_is_lost(environment, ledger)
            finally:
                stuck.thaw()

    asyncio.run(run())


def test_more_than_was_confirmed_is_not_given_up(cluster: Cluster) -> None:
    """If more is lost than the operator was told, the ledger is not closed."""
    one = cluster.ids[0]
    ledger = striped(cluster, 5, (one, *GHOSTS))

    async def run() -> None:
        async with cluster.environment() as environment:
            told = Loss(ledger, GHOSTS, 4, 5, 6 * SIZE, ((1, 1),), more_possible=True)
            with pytest.raises(LedgerRecoveryError, match="more is lost than was confirmed"):
                await close_by_force(environment, told)

    asyncio.run(run())
    assert cluster.driver.ledgers.read(ledger).value.state is LedgerState.IN_RECOVERY


def test_long_ledgers_are_looked_through_in_batches(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lost entries inside a long last segment are found without reading each of the others by itself."""
    asked: list[int] = []
    read = BookieClient.read

    async def counted(self: BookieClient, bookie: str, ledger: int, entry: int, **options: Any) -> Any:
        asked.append(entry)
        return await read(self, bookie, ledger, entry, **options)

    one = cluster.ids[0]
    segments = [(0, (one, *GHOSTS))]
    ledger = asyncio.run(cluster.write(segments, 1999, ack_quorum=2, closed=False, holes=(3, 700, 1500)))
    monkeypatch.setattr(BookieClient, "read", counted)

    async def run() -> None:
        async with cluster.environment() as environment:
            loss = await what_is_lost(environment, ledger)
            assert (loss.last_entry, loss.lost) == (1999, ((3, 3), (700, 700), (1500, 1500)))

    asyncio.run(run())
    assert len(asked) < 3 * READS_IN_FLIGHT + 20
