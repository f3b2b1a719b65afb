"""Disk space of three real bookies, as the client polls it."""

import asyncio
from pathlib import Path

from bookie.client.aio import BookKeeper
from bookie.client.placement.chances import chances
from tests.fixtures.bookies import BookieProcess


def test_space_is_polled_for_who_subscribes(uri: str, cluster: list[BookieProcess]) -> None:
    """Also where weights are off; every bookie answers, and each has its row."""

    async def story() -> None:
        async with BookKeeper(uri) as bk:
            heard = asyncio.Event()
            subscription = bk.bookie_info.subscribe(lambda known: heard.set() if len(known) == 3 else None)
            await asyncio.wait_for(heard.wait(), 60)
            subscription.close()
            rows = chances(await bk.bookies(), bk.bookie_info.known, bk.config)
            assert len(rows) == len(cluster)
            assert all(row.total and row.free and row.free <= row.total for row in rows)

    asyncio.run(story())


def test_ledgers_are_placed_by_weight_and_by_a_script(uri: str, tmp_path: Path) -> None:
    """On real bookies, which stand in one rack: any are taken."""
    script = tmp_path / "topology"
    script.write_text('#!/bin/sh\nfor host in "$@"; do echo /rack; done\n')
    script.chmod(0o700)

    async def story() -> None:
        async with (
            BookKeeper(uri, networkTopologyScriptFileName=str(script), diskWeightBasedPlacementEnabled=True) as bk,
            bk.create_ledger(ensemble_size=3, write_quorum_size=3) as ledger,
        ):
            assert await ledger.append(b"x") == 0

    asyncio.run(story())
