"""What an auditor finds, and when, on real bookies; each test has ledgers of its own."""

import asyncio
from typing import Any

import pytest

from bookie.client.replication.auditor import Auditor
from bookie.client.replication.audits import Audits
from bookie.metadata.records.replication import Check
from tests.client.replication.conftest import GHOST, Cluster, comes_true, until

pytestmark = [
    pytest.mark.leaks("gRPC keeps threads of its own for the life of the process"),
    pytest.mark.thorough,
]


@pytest.mark.thorough
def test_the_check_of_all_ledgers(cluster: Cluster) -> None:
    """A running bookie without its first or last entry is found, in closed and open ledgers; correct ones are not."""
    one, two, three, _ = cluster.ids
    right = asyncio.run(cluster.write([(0, (one, two))], 10))
    lacking = asyncio.run(cluster.write([(0, (one, two, three))], 10, absent=[two]))
    opened = asyncio.run(cluster.write([(0, (one, two, three))], 10, ack_quorum=2, absent=[three], closed=False))
    empty = asyncio.run(cluster.write([(0, (one, GHOST))], -1))
    marked = cluster.driver.replication.marked

    async def check() -> None:
        async with cluster.environment() as environment:
            await Audits(environment).check_all_ledgers()
            assert (environment.counters.ledgers_checked, environment.counters.fragments_lacking) == (4, 2)

    asyncio.run(check())
    found = marked(lacking)
    assert found is not None
    assert found.missing == (two,)
    found = marked(opened)
    assert found is not None
    assert found.missing == (three,)
    assert marked(right) is None
    assert marked(empty) is None


@pytest.mark.parametrize(("percentage", "finds"), [(0, 0), (100, 1)])
def test_a_hole_in_the_middle(cluster: Cluster, percentage: int, finds: int) -> None:
    """It is found only if all entries are read."""
    one, two, *_ = cluster.ids
    asyncio.run(cluster.write([(0, (one, two))], 10, holes=[5]))

    async def check() -> None:
        async with cluster.environment(auditorLedgerVerificationPercentage=percentage) as environment:
            await Audits(environment).check_all_ledgers()
            assert environment.counters.fragments_lacking == 2 * finds

    asyncio.run(check())


def test_the_count_of_replicas(cluster: Cluster) -> None:
    """Entries with no replica, with fewer than the ack quorum, and with fewer than the write quorum are counted."""
    one, two, three, _ = cluster.ids
    asyncio.run(cluster.write([(0, (one, two, three)), (4, (two, three, one))], 10, ack_quorum=2))
    asyncio.run(cluster.write([(0, (one, two, three))], 10, ack_quorum=2, absent=[one]))
    asyncio.run(cluster.write([(0, (one, two, three))], 10, ack_quorum=2, absent=[one, three]))
    asyncio.run(cluster.write([(0, (one, GHOST, two))], 10, write_quorum=2, ack_quorum=2, holes=[7]))

    async def count() -> None:
        async with cluster.environment() as environment:
            await Audits(environment).check_replicas()
            counters = environment.counters
            assert counters.ledgers_without_replica == 1
            assert counters.ledgers_below_ack_quorum == 2
            assert counters.ledgers_below_write_quorum == 3

    asyncio.run(count())


def test_op2_a_lost_bookie_has_its_delay(cluster: Cluster) -> None:
    """OP2 (bookkeeper#3817): nothing is marked within the delay by any check; an operator can cut it short."""
    one, two, *_ = cluster.ids
    ledger = asyncio.run(cluster.write([(0, (one, GHOST, two))], 10))
    replication = cluster.driver.replication
    replication.set_lost_bookie_delay_s(3600)

    async def audit() -> None:
        async with cluster.environment() as environment:

            async def asked() -> None:
                await comes_true(lambda: environment.counters.audits_delayed > 0)
                assert environment.counters.bookies_lost_now == 1
                assert await asyncio.to_thread(replication.marked, ledger) is None
                await asyncio.to_thread(replication.set_lost_bookie_delay_s, 0)
                await comes_true(lambda: environment.counters.bookie_audits == 1)

            await until(Auditor(environment).run(), asked())

    asyncio.run(audit())
    found = replication.marked(ledger)
    assert found is not None
    assert found.missing == (GHOST,)


def test_checks_go_on_where_the_last_auditor_was(cluster: Cluster) -> None:
    """The time of a check is in the metadata store: one that is due runs, and one that ran recently does not."""
    one, two, *_ = cluster.ids
    asyncio.run(cluster.write([(0, (one, two))], 3))
    replication = cluster.driver.replication
    replication.set_last_check_ms(Check.ALL_LEDGERS, 1)

    async def audit() -> None:
        keys: dict[str, Any] = {"auditorPeriodicCheckInterval": 3600, "auditorReplicasCheckInterval": 3600}
        async with cluster.environment(**keys) as environment:
            replication.set_last_check_ms(Check.REPLICAS, environment.epoch_ms())

            async def checked() -> None:
                await comes_true(lambda: (replication.last_check_ms(Check.ALL_LEDGERS) or 0) > 1)

            before = replication.last_check_ms(Check.REPLICAS)
            await until(Auditor(environment).run(), checked())
            assert environment.counters.ledgers_checked == 1
            assert replication.last_check_ms(Check.REPLICAS) == before

    asyncio.run(audit())
