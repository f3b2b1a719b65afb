"""Entries that live bookies lack or hold damaged are written to them again; bookies that refuse them are replaced."""

import asyncio
from collections.abc import Mapping

import pytest

from bookie.client.replication.restoring import Restored, rewrite
from bookie.client.replication.rewriting import Run, Runs
from tests.client.replication.conftest import GHOST, Cluster, comes_true
from tests.fixtures.closed_logs import closed_logs_of

pytestmark = [
    pytest.mark.leaks("gRPC keeps threads of its own for the life of the process"),
    pytest.mark.thorough,
]


def rewritten(cluster: Cluster, found: Mapping[int, Runs], *, replace: bool = False) -> list[Restored]:
    """Return the result for each ledger."""

    async def run() -> list[Restored]:
        async with cluster.environment("bkpipe") as environment:
            return [row async for row in rewrite(environment, found, replace=replace)]

    return asyncio.run(run())


def test_each_kind_is_whole_again(cluster: Cluster) -> None:
    """Damaged and missing entries are written again, striped or not, over two segments.

    Entries that the bookie need not hold are left out, and a second call writes the same again.
    """
    one, two, three, four = cluster.ids
    damaged = asyncio.run(cluster.write([(0, (one, two, three)), (7, (one, two, four))], 20, spoiled=[two]))
    striped = asyncio.run(cluster.write([(0, (one, two, three))], 20, write_quorum=2, absent=[three]))
    before = cluster.bookies_of(damaged), cluster.bookies_of(striped)
    found = {damaged: {two: [Run(0, 20)], three: [Run(7, 9)]}, striped: {three: [Run(0, 99)]}}
    for _ in range(2):
        first, second = rewritten(cluster, found)
        assert (first.state, first.entries, first.taken_by) == ("rewritten", 21, ())
        assert (second.state, second.entries, second.taken_by) == ("rewritten", 14, ())
    assert (cluster.bookies_of(damaged), cluster.bookies_of(striped)) == before
    for ledger in (damaged, striped):
        cluster.holds(ledger, cluster.driver.ledgers.read(ledger).value)


def test_the_log_of_what_was_written_again_is_closed(cluster: Cluster) -> None:
    """The end of a closed ledger is announced to the bookie that got its entries again (BP-32), and to no other one.

    Nothing is announced to a bookie that an open ledger is still written to.
    """
    one, two, three, _ = cluster.ids
    opened = asyncio.run(cluster.write([(0, (one, two, three))], 20, absent=[two], closed=False))
    closed = asyncio.run(cluster.write([(0, (one, two, three))], 20, absent=[two]))
    rows = rewritten(cluster, {opened: {two: [Run(0, 20)]}}) + rewritten(cluster, {closed: {two: [Run(0, 20)]}})
    assert [(row.state, row.entries) for row in rows] == [("rewritten", 20), ("rewritten", 21)]
    by_id = {process.id: process for process in cluster.processes}
    asyncio.run(asyncio.wait_for(comes_true(lambda: bool(closed_logs_of(by_id[two], closed))), 60))
    assert not closed_logs_of(by_id[two], opened)
    assert not closed_logs_of(by_id[one], closed) + closed_logs_of(by_id[three], closed)


def test_who_does_not_take_it_is_replaced(cluster: Cluster) -> None:
    """A bookie that is gone is replaced in the named segments, and a live one if requested; the rest stays."""
    one, two, three, four = cluster.ids
    ledger = asyncio.run(cluster.write([(0, (one, GHOST, two)), (5, (one, GHOST, two))], 9))
    other = asyncio.run(cluster.write([(0, (one, two, three))], 9, spoiled=[two]))
    (row,) = rewritten(cluster, {ledger: {GHOST: [Run(6, 6)]}})
    assert (row.state, row.entries, len(row.taken_by)) == ("copied", 5, 1)
    assert [GHOST in ensemble for ensemble in cluster.bookies_of(ledger)] == [True, False]
    (row,) = rewritten(cluster, {other: {two: [Run(0, 0)]}}, replace=True)
    assert (row.state, row.entries, row.taken_by) == ("copied", 10, (four,))
    cluster.holds(other, cluster.driver.ledgers.read(other).value)


def test_what_nobody_has(cluster: Cluster) -> None:
    """Entries next to one without a replica are written, and it is reported; other ledgers are not touched."""
    one, two, three, _ = cluster.ids
    ledger = asyncio.run(cluster.write([(0, (one, two, three))], 9, absent=[two], holes=[4]))
    fine = asyncio.run(cluster.write([(0, (one, two, three))], 9))
    row, other = rewritten(cluster, {ledger: {two: [Run(0, 9)]}, fine: {two: [Run(10, 20)]}})
    assert (row.state, row.entries) == ("failed", 9)
    assert row.error.startswith(
        f"no valid replica is left of 1 entry; the first one: ledger {ledger}, entry 4: no replica has a valid copy"
    )
    assert (other.state, other.entries) == ("complete", 0)


def test_a_segment_that_cannot_be_copied_stops_no_other(cluster: Cluster) -> None:
    """A bookie that must be replaced in two segments is replaced in the one whose entries exist."""
    one, two, three, _ = cluster.ids
    ledger = asyncio.run(cluster.write([(0, (one, two)), (5, (two, three))], 9, holes=[3]))
    (row,) = rewritten(cluster, {ledger: {two: [Run(0, 9)]}}, replace=True)
    assert row.state == "failed"
    assert f"ledger {ledger}, entry 3: no replica has a valid copy" in row.error
    assert [two in ensemble for ensemble in cluster.bookies_of(ledger)] == [True, False]


def test_who_differs_is_no_source(cluster: Cluster) -> None:
    """A replica that differs gets the entry of the others, as do a bookie that lacks it and one that replaces
    another.

    Where all replicas differ there is nothing to write.
    """
    one, two, three, four = cluster.ids
    ledger = asyncio.run(cluster.write([(0, (one, two, three))], 20, longer={(two, 5), (one, 6)}))
    found = {ledger: {two: [Run(5, 5, differs=True), Run(7, 9)], one: [Run(6, 6, differs=True)], three: [Run(0, 20)]}}
    (row,) = rewritten(cluster, found)
    assert (row.state, row.entries, row.error) == ("rewritten", 26, "")
    cluster.holds(ledger, cluster.driver.ledgers.read(ledger).value)
    other = asyncio.run(cluster.write([(0, (one, two, three))], 9, longer={(two, 5)}))
    (row,) = rewritten(cluster, {other: {two: [Run(5, 5, differs=True)]}}, replace=True)
    assert (row.state, row.taken_by) == ("copied", (four,))
    cluster.holds(other, cluster.driver.ledgers.read(other).value)
    nobodys = asyncio.run(cluster.write([(0, (one, two))], 9, longer={(two, 5)}))
    (row,) = rewritten(cluster, {nobodys: {bookie: [Run(5, 5, differs=True)] for bookie in (one, two)}})
    assert (row.state, row.entries) == ("failed", 0)
    assert row.error.startswith(
        f"no valid replica is left of 2 entries; the first one: ledger {nobodys}, entry 5: no replica"
    )
    assert "differs from the others" in row.error
