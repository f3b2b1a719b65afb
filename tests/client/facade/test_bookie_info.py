"""The disk space of three real bookies, as the client polls it."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from queue import Queue

import pytest

from bookie.client import BookieInfo, BookKeeper, aio
from bookie.client.placement.chances import chances
from bookie.errors import ClientClosed, IllegalOperation
from bookie.metadata.driver import Subscription
from tests.fixtures.bookies import BookieProcess


def test_space_is_polled_for_who_subscribes(uri: str, cluster: list[BookieProcess]) -> None:
    """A subscriber makes the client poll even without weights; every bookie answers and has its row."""

    async def scenario() -> None:
        async with aio.BookKeeper(uri) as bk:
            heard = asyncio.Event()
            subscription = bk.bookie_info.subscribe(lambda known: heard.set() if len(known) == 3 else None)
            await asyncio.wait_for(heard.wait(), 60)
            subscription.close()
            rows = chances(await bk.bookies(), bk.bookie_info.known, bk.config)
            assert len(rows) == len(cluster)
            assert all(row.total and row.free and row.free <= row.total for row in rows)

    asyncio.run(scenario())


def test_space_is_told_to_threads(uri: str, cluster: list[BookieProcess]) -> None:
    """In the client for threads, a listener is called until it closes its subscription; others are not affected."""
    with BookKeeper(uri) as bk:
        infos = bk.bookie_info
        first: Queue[Mapping[str, BookieInfo]] = Queue()
        second: Queue[Mapping[str, BookieInfo]] = Queue()
        subscription = infos.subscribe(first.put)
        while len(reported := first.get(timeout=60)) < len(cluster):
            pass
        assert reported.keys() == infos.known.keys() == bk.bookies()
        assert all(info.total >= info.free > 0 for info in reported.values())
        assert infos.errors == {}
        for _ in range(2):
            subscription.close()
        infos.subscribe(second.put)
        assert second.get(timeout=60).keys() == reported.keys()
        while not first.empty():
            first.get()
        infos.refresh()
        assert second.get(timeout=60).keys() == reported.keys()
        assert first.empty()
    subscription.close()
    with pytest.raises(ClientClosed):
        _ = infos.known
    with pytest.raises(ClientClosed):
        _ = bk.bookie_info


def test_who_listens_is_called_on_the_clients_own_thread(uri: str) -> None:
    """A listener may close its subscription; calls that wait are refused there."""
    with BookKeeper(uri) as bk:
        own: Queue[Subscription] = Queue()
        refused: Queue[str] = Queue()

        def listener(_: Mapping[str, BookieInfo]) -> None:
            own.get(timeout=60).close()
            try:
                bk.bookies()
            except IllegalOperation as error:
                refused.put(str(error))

        own.put(bk.bookie_info.subscribe(listener))
        assert "on the client's own thread" in refused.get(timeout=60)
        other: Queue[Mapping[str, BookieInfo]] = Queue()
        bk.bookie_info.subscribe(other.put)
        bk.bookie_info.refresh()
        for _ in range(2):
            other.get(timeout=60)
        assert refused.empty()


def test_ledgers_are_placed_by_weight_and_by_a_script(uri: str, tmp_path: Path) -> None:
    """On real bookies in one rack any bookies are chosen."""
    script = tmp_path / "topology"
    script.write_text('#!/bin/sh\nfor host in "$@"; do echo /rack; done\n')
    script.chmod(0o700)

    async def scenario() -> None:
        async with (
            aio.BookKeeper(uri, networkTopologyScriptFileName=str(script), diskWeightBasedPlacementEnabled=True) as bk,
            bk.create_ledger(ensemble_size=3, write_quorum_size=3) as ledger,
        ):
            assert await ledger.append(b"x") == 0

    asyncio.run(scenario())
