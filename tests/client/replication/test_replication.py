"""Ledgers that lost replicas get new ones, on real bookies and metadata stores; each test has ledgers of its own."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from bookie.client import Digest, DigestType
from bookie.client.bookies.client import BookieClient
from bookie.client.replication.contracts import Environment
from bookie.client.replication.decommission import decommission
from bookie.client.replication.service import serve
from bookie.client.replication.stores import StoredQueue
from bookie.client.replication.worker import ReplicationWorker
from bookie.errors import IllegalOperation, MetadataStoreError
from bookie.metadata.records.ledger_metadata import LedgerState
from bookie.metadata.records.replication import Claim
from tests.client.replication.conftest import GHOST, PASSWORD, SIZE, Cluster, comes_true, until
from tests.fixtures.closed_logs import closed_logs_of
from tests.interop.payload import payload

pytestmark = pytest.mark.leaks("gRPC keeps threads of its own for the life of the process")


async def replicate(environment: Environment, count: int) -> None:
    """Run a worker until it has finished this many ledgers."""
    await until(ReplicationWorker(environment).run(), comes_true(lambda: environment.counters.ledgers >= count))


async def work(cluster: Cluster, *ledgers: int, **keys: Any) -> dict[str, int]:
    """Mark `ledgers`, run a worker until none is left, and return its counters."""
    for ledger in ledgers:
        cluster.driver.replication.mark(ledger, [GHOST], 1)
    async with cluster.environment(**keys) as environment:
        await replicate(environment, len(ledgers))
        assert cluster.driver.replication.holders() == {}
        return environment.counters.as_stats()


@pytest.mark.parametrize("digest_type", DigestType)
def test_a_lost_replica_is_copied(cluster: Cluster, digest_type: DigestType) -> None:
    """L11: once the metadata have a new bookie, it holds all entries of its place, with valid digests."""
    one, two, *_ = cluster.ids
    digest = Digest.of(digest_type, PASSWORD)
    ledger = asyncio.run(cluster.write([(0, (one, GHOST, two))], 40, digest=digest))
    stats = asyncio.run(work(cluster, ledger))
    metadata = cluster.wait_without(ledger, GHOST)
    assert len(set(metadata.segments[0].bookies)) == 3
    assert metadata.segments[0].bookies[::2] == (one, two)
    cluster.holds(ledger, metadata)
    assert cluster.driver.replication.marked(ledger) is None
    assert (stats["autorecovery_entries"], stats["autorecovery_fragments"]) == (41, 1)


def test_the_copys_log_is_closed_when_it_is_done(cluster: Cluster) -> None:
    """The worker announces the end of the ledger (BP-32), so the next checkpoint closes the log of the copy.

    The logs of the bookies that the ledger was written to, which got no announcement, are still open.
    """
    one, two, *_ = cluster.ids
    ledger = asyncio.run(cluster.write([(0, (one, GHOST, two))], 40))
    asyncio.run(work(cluster, ledger))
    target = cluster.wait_without(ledger, GHOST).segments[0].bookies[1]
    by_id = {process.id: process for process in cluster.processes}
    asyncio.run(asyncio.wait_for(comes_true(lambda: bool(closed_logs_of(by_id[target], ledger))), 60))
    assert not closed_logs_of(by_id[one], ledger)
    assert not closed_logs_of(by_id[two], ledger)


@pytest.mark.parametrize("keys", [{}, {"recoveryBatchReadEnabled": False}, {"useV2WireProtocol": True}])
def test_every_segment_and_stripe(cluster: Cluster, keys: dict[str, Any]) -> None:
    """Several segments, striped and not, one with two lost places, are copied by batch reads and by single reads."""
    one, two, three, four = cluster.ids
    striped = asyncio.run(
        cluster.write([(0, (one, GHOST, two)), (10, (GHOST, three, four)), (17, (one, two, three))], 30, write_quorum=2)
    )
    whole = asyncio.run(cluster.write([(0, (one, GHOST)), (5, (two, three)), (9, (GHOST, four))], 20))
    asyncio.run(work(cluster, striped, whole, **keys))
    for ledger in (striped, whole):
        cluster.holds(ledger, cluster.wait_without(ledger, GHOST))


@pytest.mark.parametrize("key", ["batchReadEnabled", "recoveryBatchReadEnabled"])
@pytest.mark.parametrize("on", [False, True])
def test_whether_batches_are_read(cluster: Cluster, monkeypatch: pytest.MonkeyPatch, key: str, on: bool) -> None:
    """Batches are read only if both keys allow it, as in Apache BookKeeper; the copy is the same."""
    real, batches = BookieClient.batch_read, []

    async def counted(client: BookieClient, bookie: str, *given: Any, **named: Any) -> Any:
        batches.append(bookie)
        return await real(client, bookie, *given, **named)

    monkeypatch.setattr(BookieClient, "batch_read", counted)
    one, two, *_ = cluster.ids
    ledger = asyncio.run(cluster.write([(0, (one, GHOST, two))], 20))
    asyncio.run(work(cluster, ledger, **{key: on}))
    cluster.holds(ledger, cluster.wait_without(ledger, GHOST))
    assert bool(batches) == on


def test_a_wrong_digest_is_never_copied(cluster: Cluster) -> None:
    """L11: a damaged replica is skipped; if all are damaged, nothing is copied and the ledger stays marked."""
    one, two, *_ = cluster.ids
    good = asyncio.run(cluster.write([(0, (one, two, GHOST))], 20, spoiled=[one]))
    asyncio.run(work(cluster, good))
    (ensemble,) = cluster.bookies_of(good)
    assert GHOST not in ensemble
    cluster.holds(good, cluster.driver.ledgers.read(good).value, but=one)

    bad = asyncio.run(cluster.write([(0, (one, two, GHOST))], 20, spoiled=[one, two]))
    cluster.driver.replication.mark(bad, [GHOST], 1)

    async def fail_twice() -> None:
        async with cluster.environment() as environment:
            await until(
                ReplicationWorker(environment).run(), comes_true(lambda: environment.counters.ledgers_failed >= 2)
            )
            assert environment.counters.entries == 0

    asyncio.run(fail_twice())
    assert cluster.bookies_of(bad) == [(one, two, GHOST)]
    assert cluster.driver.replication.marked(bad) is not None


def test_two_workers_share_the_queue(cluster: Cluster) -> None:
    """No ledger is finished twice, none is left, and both workers finish some."""
    one, two, *_ = cluster.ids
    ledgers = [asyncio.run(cluster.write([(0, (one, GHOST, two))], 3)) for _ in range(8)]
    for ledger in ledgers:
        cluster.driver.replication.mark(ledger, [GHOST], 1)

    async def share() -> None:
        async with cluster.environment("w1") as first, cluster.environment("w2") as second:
            await replicate(first, 1)
            await replicate(second, 1)
            both = asyncio.gather(ReplicationWorker(first).run(), ReplicationWorker(second).run())
            await until(both, comes_true(lambda: not list(cluster.driver.replication.marks())))
            done = first.counters.ledgers, second.counters.ledgers
            assert min(done) > 0
            assert sum(done) <= len(ledgers)

    asyncio.run(share())
    for ledger in ledgers:
        cluster.holds(ledger, cluster.wait_without(ledger, GHOST))


def test_a_worker_that_dies_leaves_its_ledger(cluster: Cluster) -> None:
    """A lock ends with its worker's session, and another worker that waits is informed."""
    one, two, *_ = cluster.ids
    ledger = asyncio.run(cluster.write([(0, (one, GHOST, two))], 3))
    cluster.driver.replication.mark(ledger, [GHOST], 1)

    async def take_over() -> None:
        async with cluster.environment("alive") as alive:
            async with cluster.environment("dead") as dead:
                assert await dead.queue.claim("dead", dead.random, lambda: None) is not None
                assert await alive.queue.claim("looks", alive.random, lambda: None) is None
            await replicate(alive, 1)

    asyncio.run(take_over())
    cluster.holds(ledger, cluster.wait_without(ledger, GHOST))


def test_an_open_ledger_is_closed_after_its_grace(cluster: Cluster) -> None:
    """Nothing is fenced while the writer may still replace the lost bookie; then the ledger is closed and copied."""
    one, two, *_ = cluster.ids
    ledger = asyncio.run(cluster.write([(0, (one, GHOST, two))], 20, ack_quorum=2, closed=False))
    stats = asyncio.run(work(cluster, ledger))
    assert (stats["autorecovery_ledgers_recovered"], stats["autorecovery_ledgers_deferred"]) == (1, 1)
    metadata = cluster.wait_without(ledger, GHOST)
    assert (metadata.state, metadata.last_entry) == (LedgerState.CLOSED, 20)
    cluster.holds(ledger, metadata)

    replaced = asyncio.run(cluster.write([(0, (one, GHOST, two))], 20, ack_quorum=2, closed=False))
    cluster.driver.replication.mark(replaced, [GHOST], 1)

    async def wait_and_see() -> None:
        async with cluster.environment(openLedgerRereplicationGracePeriod=60_000) as environment:
            await until(
                ReplicationWorker(environment).run(), comes_true(lambda: environment.counters.ledgers_deferred == 1)
            )

    asyncio.run(wait_and_see())
    assert cluster.driver.ledgers.read(replaced).value.state is LedgerState.OPEN
    assert cluster.driver.replication.marked(replaced) is not None


async def add(ledger: int, entries: range, *bookies: str) -> None:
    """Add entries to bookies like the ledger's writer."""
    digest = Digest.of(DigestType.CRC32C, PASSWORD)
    async with BookieClient() as client:
        for entry in entries:
            stored = digest.seal(ledger, entry, payload(ledger, entry, SIZE), lac=entry - 1, length=(entry + 1) * SIZE)
            await asyncio.gather(*(client.add(bookie, ledger, entry, stored, digest.master_key) for bookie in bookies))


def test_a_replica_that_lags_closes_no_ledger(cluster: Cluster) -> None:
    """The bookie has caught up with what it lacked at the first look, and is behind again: its writer is healthy."""
    one, two, three, _ = cluster.ids
    bookies = (one, two, three)
    ledger = asyncio.run(cluster.write([(0, bookies)], 20, ack_quorum=2, closed=False, absent=[three]))
    cluster.driver.replication.mark(ledger, [three], 1)

    async def look() -> None:
        async with cluster.environment(openLedgerRereplicationGracePeriod=3000) as environment:
            counters = environment.counters

            async def script() -> None:
                await comes_true(lambda: counters.ledgers_deferred == 1)
                await add(ledger, range(21), three)
                await add(ledger, range(21, 40), one, two)
                await comes_true(lambda: counters.ledgers_deferred == 2)
                await add(ledger, range(21, 40), three)
                await comes_true(lambda: counters.ledgers == 1)
                assert counters.ledgers_recovered == 0

            await until(ReplicationWorker(environment).run(), script())

    asyncio.run(look())
    assert cluster.driver.ledgers.read(ledger).value.state is LedgerState.OPEN


def test_a_replica_that_lacks_the_same_entries_closes_the_ledger(
    cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    """Its writer has not noticed that the bookie lost them. The log says which bookie lacks entries."""
    one, two, three, _ = cluster.ids
    ledger = asyncio.run(cluster.write([(0, (one, two, three))], 20, ack_quorum=2, closed=False, absent=[three]))
    stats = asyncio.run(work(cluster, ledger))
    assert stats["autorecovery_ledgers_recovered"] == 1
    metadata = cluster.driver.ledgers.read(ledger).value
    assert metadata.state is LedgerState.CLOSED
    cluster.holds(ledger, metadata)
    assert f"since bookies lack confirmed entries ledger={ledger} first=0 bookies={three}" in caplog.text


def test_a_deleted_ledger_is_forgotten(cluster: Cluster) -> None:
    """The mark of a deleted ledger is removed, and nothing else happens."""
    marked = cluster.driver.replication.marked
    cluster.driver.replication.mark(999_999, [GHOST], 1)

    async def forget() -> None:
        async with cluster.environment() as environment:
            await until(ReplicationWorker(environment).run(), comes_true(lambda: marked(999_999) is None))
            assert environment.counters.ledgers_failed == 0

    asyncio.run(forget())


def test_a_store_that_does_not_answer_at_the_end_of_a_deleted_ledger(cluster: Cluster) -> None:
    """The worker goes on, lets the ledger go, and removes its mark in a later round."""
    marked = cluster.driver.replication.marked
    cluster.driver.replication.mark(999_998, [GHOST], 1)

    class Failing(StoredQueue):
        """A queue whose first claim cannot be finished."""

        failures = 0

        async def finish(self, claim: Claim) -> bool:
            if not self.failures:
                self.failures += 1
                raise MetadataStoreError("the store does not answer")
            return await super().finish(claim)

    async def forget() -> None:
        async with cluster.environment() as environment:
            assert isinstance(environment.queue, StoredQueue)
            queue = Failing(environment.queue._store)
            worker = ReplicationWorker(replace(environment, queue=queue))
            await until(worker.run(), comes_true(lambda: marked(999_998) is None))
            assert (queue.failures, environment.counters.ledgers_failed) == (1, 1)

    asyncio.run(forget())


@pytest.mark.thorough
def test_a_bookie_dies_and_is_decommissioned(cluster: Cluster) -> None:
    """OP1: a killed bookie's ledgers are copied and read without it; the one with a single replica is reported."""
    one, two, dying, four = cluster.ids
    process = next(process for process in cluster.processes if process.id == dying)
    ledgers = [asyncio.run(cluster.write([(0, (one, dying, two))], 10)) for _ in range(3)]
    ledgers.append(asyncio.run(cluster.write([(0, (dying, two, four))], 10, write_quorum=2)))
    single = asyncio.run(cluster.write([(0, (dying,))], 5))
    elsewhere = asyncio.run(cluster.write([(0, (one, two))], 5))

    async def retire() -> None:
        async with cluster.environment("auto") as environment:

            async def follow() -> None:
                with pytest.raises(IllegalOperation, match="stop it first"):
                    await anext(decommission(environment, dying))
                await asyncio.to_thread(process.kill)
                await comes_true(lambda: dying not in environment.cluster.alive)
                looks = [look async for look in decommission(environment, dying, poll_s=0.05)]
                assert (looks[0].total - len(looks[0].blocked), looks[-1].remaining) == (len(looks[0].remaining), ())
                assert set(looks[0].remaining) <= set(ledgers)
                assert set(looks[-1].blocked) == {single}
                assert "writeQuorum=1" in looks[-1].blocked[single]

            await until(serve(environment), follow())

    asyncio.run(retire())
    for ledger in ledgers:
        cluster.holds(ledger, cluster.wait_without(ledger, dying))
    assert cluster.bookies_of(single) == [(dying,)]
    assert cluster.bookies_of(elsewhere) == [(one, two)]


@pytest.mark.thorough
def test_bug_38_an_auditor_finds_who_died_before(cluster: Cluster) -> None:
    """bookkeeper#4419: a ghost is found by the ledgers that name it; while replication is disabled, nothing happens."""
    one, two, *_ = cluster.ids
    ledger = asyncio.run(cluster.write([(0, (one, GHOST, two))], 10))
    driver = cluster.driver
    driver.replication.enable(enabled=False)

    async def audit() -> None:
        async with cluster.environment("auditor") as environment:

            async def copied() -> None:
                await comes_true(lambda: environment.counters.elected_now == 1)
                assert await asyncio.to_thread(driver.election.auditor) == "auditor"
                assert await asyncio.to_thread(driver.replication.marked, ledger) is None
                await asyncio.to_thread(driver.replication.enable, enabled=True)
                await asyncio.to_thread(cluster.wait_without, ledger, GHOST)

            await until(serve(environment), copied())
            assert environment.counters.bookie_audits == 1

    asyncio.run(audit())
    cluster.holds(ledger, cluster.wait_without(ledger, GHOST))
