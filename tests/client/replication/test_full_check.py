"""Holes inside the parts of live bookies are found by lists of entries, and filled."""

import asyncio
from typing import Any

import pytest

from bookie.client.bookies.client import BookieClient
from bookie.client.replication.auditor import Auditor
from bookie.client.replication.audits import Audits
from bookie.client.replication.full_check import FullCheck
from bookie.client.replication.rewriting import Run
from bookie.errors import RequestTimeout
from bookie.metadata.records.replication import Check
from tests.client.replication.conftest import GHOST, Cluster, comes_true, until

pytestmark = [
    pytest.mark.leaks("gRPC keeps threads of its own for the life of the process"),
    pytest.mark.thorough,
]


def checked(cluster: Cluster, **keys: Any) -> dict[str, int]:
    """Run the check once, and return the counters."""

    async def run() -> dict[str, int]:
        async with cluster.environment("auditor", **keys) as environment:
            await FullCheck(environment).run()
            return environment.counters.as_stats()

    return asyncio.run(run())


def test_holes_are_found_and_filled(cluster: Cluster) -> None:
    """They are in striped ledgers and others, in several segments, and at the ends; the other check sees none of the
    inner ones.
    """
    one, two, three, four = cluster.ids
    inner = [(two, entry) for entry in (3, 4, 9)]
    whole = asyncio.run(
        cluster.write([(0, (one, two, three)), (7, (one, two, four))], 20, lacking=[*inner, (four, 12)])
    )
    striped = asyncio.run(cluster.write([(0, (one, two, three))], 20, write_quorum=2, lacking=[(one, 9), (one, 11)]))
    right = asyncio.run(cluster.write([(0, (one, two)), (5, (three, four))], 9))
    opened = asyncio.run(cluster.write([(0, (one, two)), (5, (three, four))], 9, closed=False, lacking=[(one, 2)]))
    before = [cluster.bookies_of(ledger) for ledger in (whole, striped, right, opened)]

    async def look() -> None:
        async with cluster.environment() as environment:
            await Audits(environment).check_all_ledgers()
            assert environment.counters.fragments_lacking == 0
            check, metadata = FullCheck(environment), await environment.metadata.read(whole)
            assert await check.holes(whole, metadata.value) == {
                two: [Run(3, 4), Run(9, 9)],
                four: [Run(12, 12)],
            }

    asyncio.run(look())
    stats = checked(cluster)
    assert (stats["autorecovery_holes_found"], stats["autorecovery_holes_filled"]) == (7, 7)
    assert [cluster.bookies_of(ledger) for ledger in (whole, striped, right, opened)] == before
    for ledger in (whole, striped):
        cluster.holds(ledger, cluster.driver.ledgers.read(ledger).value)
    assert checked(cluster)["autorecovery_holes_found"] == 0


def test_what_nobody_has_is_reported(cluster: Cluster) -> None:
    """A hole on every replica cannot be filled; the other ledgers are, and lost bookies are left to the other check."""
    one, two, *_ = cluster.ids
    asyncio.run(cluster.write([(0, (one, two))], 9, holes=[5]))
    good = asyncio.run(cluster.write([(0, (one, two, GHOST))], 9, lacking=[(one, 5)]))
    stats = checked(cluster)
    assert (stats["autorecovery_holes_filled"], stats["autorecovery_checks_failed"]) == (1, 1)
    cluster.holds(good, cluster.driver.ledgers.read(good).value, but=GHOST)


def test_a_bookie_that_lists_nothing_is_left_out(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some versions of Java bookies never answer; they are waited for once, and the others are checked."""
    one, two, three, _ = cluster.ids
    for _ in range(2):
        asyncio.run(cluster.write([(0, (one, two, three))], 9, lacking=[(two, 5), (one, 6)]))
    real, asked = BookieClient.list_entries, []

    async def unanswered(client: BookieClient, bookie: str, ledger: int) -> Any:
        asked.append(bookie)
        if bookie == two:
            raise RequestTimeout("no answer")
        return await real(client, bookie, ledger)

    monkeypatch.setattr(BookieClient, "list_entries", unanswered)
    assert checked(cluster)["autorecovery_holes_filled"] == 2
    assert asked.count(two) == 1


def test_the_auditor_checks_at_intervals(cluster: Cluster) -> None:
    """The time of the last check is in the metadata store, for the next auditor."""
    one, two, *_ = cluster.ids
    ledger = asyncio.run(cluster.write([(0, (one, two))], 9, lacking=[(one, 5)]))
    replication = cluster.driver.replication
    replication.set_last_check_ms(Check.HOLES, 1)

    async def audit() -> None:
        async with cluster.environment(auditorFullCheckInterval=3600) as environment:
            await until(
                Auditor(environment).run(), comes_true(lambda: (replication.last_check_ms(Check.HOLES) or 0) > 1)
            )
            assert environment.counters.holes_filled == 1

    asyncio.run(audit())
    cluster.holds(ledger, cluster.driver.ledgers.read(ledger).value)
