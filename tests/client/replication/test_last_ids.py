"""Ledgers whose entries have the largest ids that there are. A bookie takes ids up to 2**63 - 2."""

import asyncio
from collections.abc import Collection
from dataclasses import replace

import pytest

from bookie.client import Digest, DigestType, Flags
from bookie.client.bookies.client import BookieClient
from bookie.client.replication.restoring import Restored, rewrite
from bookie.client.replication.rewriting import Run
from bookie.client.replication.worker import ReplicationWorker
from bookie.metadata.records.ledger_metadata import Segment
from tests.client.replication.conftest import GHOST, PASSWORD, SIZE, Cluster, comes_true, until

pytestmark = pytest.mark.leaks("gRPC keeps threads of its own for the life of the process")

LAST = (1 << 63) - 2
FIRST = LAST - 5
DIGEST = Digest.of(DigestType.CRC32C, PASSWORD)


async def late(cluster: Cluster, ensemble: tuple[str, ...], holders: Collection[str], write_quorum: int) -> int:
    """Write a closed ledger with the second segment FIRST to LAST, whose entries only `holders` store.

    Of the first segment only the entries at both ends exist, which is all that a worker looks at.
    """
    ledger = await cluster.write([(0, cluster.ids[:3])], 2, write_quorum=write_quorum)
    stored = cluster.driver.ledgers.read(ledger)
    segments = (*stored.value.segments, Segment(FIRST, ensemble))
    metadata = replace(stored.value, segments=segments, last_entry=LAST)
    async with BookieClient() as client:
        for entry in range(FIRST - 3, LAST + 1):
            sealed = DIGEST.seal(ledger, entry, b"%d" % entry, lac=entry - 1, length=SIZE)
            for bookie in metadata.write_set(entry):
                if entry < FIRST or bookie in holders:
                    await client.add(bookie, ledger, entry, sealed, DIGEST.master_key, flags=Flags.RECOVERY_ADD)
    cluster.driver.ledgers.write(ledger, metadata, stored.version)
    return ledger


async def all_held(cluster: Cluster, ledger: int) -> None:
    """Fail unless each bookie of the second segment has its entries."""
    metadata = cluster.driver.ledgers.read(ledger).value
    async with BookieClient() as client:
        for entry in range(FIRST, LAST + 1):
            for bookie in metadata.write_set(entry):
                answer = await client.read(bookie, ledger, entry)
                assert answer.stored is not None
                assert DIGEST.open(answer.stored, ledger, entry).payload == b"%d" % entry


@pytest.mark.parametrize("write_quorum", [3, 2])
def test_a_lost_replica_is_copied(cluster: Cluster, write_quorum: int) -> None:
    """A worker copies the entries up to the last id, striped or not."""
    one, two, *_ = cluster.ids

    async def script() -> None:
        ledger = await late(cluster, (one, GHOST, two), (one, two), write_quorum)
        cluster.driver.replication.mark(ledger, [GHOST], 1)
        async with cluster.environment() as environment:
            counters = environment.counters
            await until(ReplicationWorker(environment).run(), comes_true(lambda: counters.ledgers == 1))
        assert all(GHOST not in bookies for bookies in cluster.bookies_of(ledger))
        await all_held(cluster, ledger)

    asyncio.run(script())


def test_entries_are_written_again(cluster: Cluster) -> None:
    """A live bookie that lacks the entries gets them."""
    one, two, three, _ = cluster.ids

    async def script() -> list[Restored]:
        ledger = await late(cluster, (one, two, three), (one, three), 3)
        async with cluster.environment("bkpipe") as environment:
            rows = [row async for row in rewrite(environment, {ledger: {two: [Run(FIRST, LAST)]}}, replace=False)]
        await all_held(cluster, ledger)
        return rows

    (row,) = asyncio.run(script())
    assert (row.state, row.entries) == ("rewritten", 6)
