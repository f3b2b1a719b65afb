"""The comparison of replicas, without Spark, on real bookies."""

import asyncio

import pytest

from bookie.spark.formats.comparing import EXTRA, OK, Comparison, Sample
from tests.client.writing.cluster import client
from tests.fixtures.bookies import BookieProcess
from tests.spark.planted import Planted, plant

pytestmark = pytest.mark.leaks("gRPC keeps threads of its own for the life of the process")


def test_extra_entries_far_after_the_end(three_bookies: list[BookieProcess], three_uri: str) -> None:
    """Stray entries with large ids are found at once: ids that no bookie lists are not walked."""
    strays = [20_000, 1 << 40, (1 << 40) + 1, 1 << 59]
    ids = plant(three_uri, three_bookies, 8013, 3, Planted(extra=[(2, entry) for entry in strays]))

    async def run() -> list[tuple[int, str, int]]:
        async with client(three_uri) as opened, asyncio.timeout(30):
            return [
                (entry, found.bookie, status)
                async for rows in Comparison(opened.context, Sample("all")).ledger(8013)
                for found in rows
                for entry, status in zip(found.entries.tolist(), found.status.tolist(), strict=True)
            ]

    expected = [(entry, bookie, OK) for entry in range(3) for bookie in ids]
    expected += [(entry, ids[2], EXTRA) for entry in strays]
    assert sorted(asyncio.run(run())) == sorted(expected)
