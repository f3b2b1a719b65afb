"""Limits of the ledgers that a worker holds back."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from bookie.client.replication import worker
from bookie.client.replication.contracts import Ledgers
from bookie.client.replication.worker import ReplicationWorker
from bookie.errors import MetadataStoreError
from bookie.metadata.records.ledger_metadata import LedgerMetadata
from bookie.metadata.records.replication import Claim
from tests.client.replication.conftest import GHOST, Cluster, comes_true, until

pytestmark = [
    pytest.mark.leaks("gRPC keeps threads of its own for the life of the process"),
    pytest.mark.thorough,
]


class Slow:
    """Ledgers that are recovered only when the test sets `go`, and how many wait for it."""

    def __init__(self, ledgers: Ledgers) -> None:
        self._ledgers = ledgers
        self.go = asyncio.Event()
        self.recovering = 0

    async def last_confirmed(self, ledger: int, metadata: LedgerMetadata) -> int:
        """Return the LAC."""
        return await self._ledgers.last_confirmed(ledger, metadata)

    async def recover(self, ledger: int) -> None:
        """Wait for `go`, then recover the ledger."""
        self.recovering += 1
        await self.go.wait()
        await self._ledgers.recover(ledger)
        self.recovering -= 1


async def opened(cluster: Cluster, count: int) -> list[int]:
    """Return marked ledgers that are open, and whose ensemble has lost a bookie."""
    one, two, *_ = cluster.ids
    ledgers = [await cluster.write([(0, (one, GHOST, two))], 2, ack_quorum=2, closed=False) for _ in range(count)]
    for ledger in ledgers:
        cluster.driver.replication.mark(ledger, [GHOST], 1)
    return ledgers


def test_no_more_ledgers_are_taken_than_may_be_held(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other workers can take the rest; the worker takes the next one when it lets one go."""
    monkeypatch.setattr(worker, "HELD_MAX", 2)

    async def scenario() -> None:
        ledgers = await opened(cluster, 4)
        holders = cluster.driver.replication.holders
        async with cluster.environment(openLedgerRereplicationGracePeriod=1000) as environment:
            counters: Any = environment.counters

            async def script() -> None:
                await comes_true(lambda: counters.ledgers_deferred == 2)
                assert len(holders()) == 2
                await asyncio.sleep(0.3)
                assert (counters.ledgers_deferred, len(holders())) == (2, 2)
                await comes_true(lambda: counters.ledgers == len(ledgers))

            await until(ReplicationWorker(environment).run(), script())

    asyncio.run(scenario())


def test_few_ledgers_are_closed_at_the_same_time(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """When the grace of many ends at once, each recovery has requests and memory of its own."""
    monkeypatch.setattr(worker, "CLOSING_MAX", 2)

    async def scenario() -> None:
        ledgers = await opened(cluster, 5)
        async with cluster.environment() as environment:
            counters, slow = environment.counters, Slow(environment.ledgers)

            async def script() -> None:
                await comes_true(lambda: counters.ledgers_deferred == 5 and slow.recovering >= 2)
                await asyncio.sleep(0.5)
                assert slow.recovering == 2
                slow.go.set()
                await comes_true(lambda: counters.ledgers == len(ledgers))

            await until(ReplicationWorker(replace(environment, ledgers=slow)).run(), script())

    asyncio.run(scenario())


def test_a_store_that_does_not_answer_when_the_worker_ends(cluster: Cluster) -> None:
    """It is asked a few times, not once or twice for each lock: each answer would take as long as a session."""

    async def scenario() -> None:
        await opened(cluster, 12)
        async with cluster.environment(openLedgerRereplicationGracePeriod=60_000) as environment:
            queue: Any = environment.queue
            release, asked = queue.release, []

            async def unanswered(claim: Claim) -> None:
                asked.append(claim)
                await asyncio.sleep(0.1)
                raise MetadataStoreError("no answer in time")

            async def script() -> None:
                await comes_true(lambda: environment.counters.ledgers_deferred == 12)
                queue.release = unanswered

            await until(ReplicationWorker(environment).run(), script())
            assert 0 < len(asked) <= 4
            queue.release = release

    asyncio.run(scenario())
    assert asyncio.run(held_by_nobody(cluster))


async def held_by_nobody(cluster: Cluster) -> bool:
    """Wait until the locks have ended with their session."""
    async with asyncio.timeout(60):
        await comes_true(lambda: cluster.driver.replication.holders() == {})
    return True
