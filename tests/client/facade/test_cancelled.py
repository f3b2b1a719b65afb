"""Calls of the asyncio client that are cancelled wherever they wait: nothing is skipped, repeated or left behind."""

import asyncio
from collections.abc import Callable

import pytest

from bookie.client.aio import BookKeeper
from bookie.client.aio.reading import Batches, ReadHandle
from tests.client.cancelling import Moment, in_spite_of_cancellations

PROTOCOLS = pytest.mark.parametrize("v2", [True, False], ids=["v2", "v3"])
ENTRIES = 60


async def taken(batches: Batches, moment: Moment) -> list[bytes]:
    """Return all payloads, where each call is cancelled at each of the points where it waits before it may end."""
    found: list[bytes] = []
    while True:
        try:
            batch = await in_spite_of_cancellations(batches.__anext__, moment)
        except StopAsyncIteration:
            return found
        found += [bytes(entry.data) for entry in batch]


ITERATORS: dict[str, Callable[[ReadHandle], Batches]] = {
    "batches": lambda reader: reader.batches(max_count=3),
    "follow": lambda reader: reader.follow(max_count=3),
}


@PROTOCOLS
@pytest.mark.parametrize("moment", Moment)
@pytest.mark.parametrize("kind", ITERATORS)
def test_no_entry_is_lost_by_a_cancelled_iteration(uri: str, v2: bool, kind: str, moment: Moment) -> None:
    """Every entry arrives once and in order, though each call is cancelled at every point before it is repeated."""

    async def scenario() -> None:
        payloads = [b"entry %d" % entry for entry in range(ENTRIES)]
        async with BookKeeper(uri, useV2WireProtocol=v2) as bk:
            async with bk.create_ledger(write_quorum_size=3) as writer:
                for payload in payloads:
                    await writer.append(payload)
            async with bk.open_ledger(writer.id) as reader:
                assert await taken(ITERATORS[kind](reader), moment) == payloads

    asyncio.run(asyncio.wait_for(scenario(), 60))
