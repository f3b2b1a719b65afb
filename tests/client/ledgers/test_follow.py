"""Read ledgers while they are written: the LAC rises, the ensemble changes, the ledger ends or is deleted."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from bookie.client.bookies.client import BookieClient
from bookie.client.bookies.stores import MetadataStore
from bookie.client.config import ClientConfig
from bookie.client.ledgers.reader import LedgerReader
from bookie.errors import NoSuchLedgerMetadata
from bookie.metadata import open_driver
from bookie.metadata.driver import Versioned
from bookie.metadata.records.ledger_metadata import LedgerMetadata, LedgerState, Segment
from tests.client.ledgers.shelf import Shelf, metadata, payload


class FollowedLedger:
    """A ledger in the store, its reader, and the entries read so far."""

    def __init__(self, shelf: Shelf, ledger: int, reader: LedgerReader, store: MetadataStore) -> None:
        self.shelf = shelf
        self.ledger = ledger
        self.reader = reader
        self.store = store
        self.seen: list[bytes] = []
        self.more = asyncio.Condition()

    async def follow(self, **limits: int) -> None:
        """Read to the end."""
        async for batch in self.reader.follow(**limits):
            async with self.more:
                assert batch.first == len(self.seen)
                self.seen += [bytes(entry.data) for entry in batch]
                self.more.notify_all()

    async def until(self, count: int) -> None:
        """Wait until this many entries were read."""
        async with self.more:
            await self.more.wait_for(lambda: len(self.seen) >= count)

    async def write(self, entries: range, places: tuple[int, ...] = (0, 1, 2)) -> None:
        """Store entries like a writer, replica by replica."""
        for place in places:
            await asyncio.to_thread(self.shelf.put, self.ledger, place, entries)

    async def change(self, **fields: Any) -> None:
        """Change the metadata in the store."""
        now: Versioned[LedgerMetadata] = await self.store.read(self.ledger)
        await self.store.write(self.ledger, replace(now.value, **fields), now.version)

    async def close(self, last: int) -> None:
        """Close the ledger like its writer."""
        await self.change(state=LedgerState.CLOSED, last_entry=last, length=1)


def tell(shelf: Shelf, ensemble: list[str], work: Callable[[FollowedLedger], Awaitable[None]], **settings: Any) -> None:
    """Run a scenario with a new, open ledger."""

    async def main() -> None:
        config = ClientConfig.of(settings)
        store = await MetadataStore.open(open_driver(shelf.uri))
        try:
            ledger = shelf.ledger([], ())
            versioned = await store.create(ledger, metadata({0: ensemble}, None))
            async with BookieClient(config, store.info) as client:
                reader = shelf.reader_of(ledger, versioned, client, store, config)
                try:
                    await work(FollowedLedger(shelf, ledger, reader, store))
                finally:
                    reader.close()
        finally:
            await store.close()

    asyncio.run(asyncio.wait_for(main(), 60))


def test_followed_to_its_end(shelf: Shelf, v2: bool) -> None:
    """Entries arrive as they are acknowledged, in order and once, the last ones when the ledger is closed."""

    async def work(followed: FollowedLedger) -> None:
        await followed.write(range(10))
        following = asyncio.ensure_future(followed.follow(max_count=3))
        await followed.until(9)
        assert len(followed.seen) == 9
        for entry in range(10, 20):
            await followed.write(range(entry, entry + 1))
            await followed.until(entry)
        await followed.close(19)
        await following
        assert followed.seen == [payload(entry) for entry in range(20)]

    tell(shelf, shelf.ids, work, use_v2_wire_protocol=v2)


def test_br16_followed_over_an_ensemble_change(shelf: Shelf, v2: bool) -> None:
    """BR16, L7: a reader that waits at the old ensemble sees the new one in the metadata."""

    async def work(followed: FollowedLedger) -> None:
        following = asyncio.ensure_future(followed.follow())
        await followed.write(range(5), (0, 1))
        await followed.until(4)
        segments = (Segment(0, tuple(shelf.ids[:2])), Segment(5, (shelf.ids[1], shelf.ids[2])))
        await followed.change(segments=segments)
        await followed.until(5)
        await followed.write(range(5, 12), (1, 2))
        await followed.until(11)
        await followed.close(11)
        await following
        assert followed.seen == [payload(entry) for entry in range(12)]

    tell(shelf, shelf.ids[:2], work, use_v2_wire_protocol=v2)


def test_followed_before_anything_is_written(shelf: Shelf, v2: bool) -> None:
    """A ledger that no bookie knows yet can be followed; here it is closed empty."""

    async def work(followed: FollowedLedger) -> None:
        following = asyncio.ensure_future(followed.follow())
        await followed.close(-1)
        await following
        assert followed.seen == []

    tell(shelf, shelf.ids, work, use_v2_wire_protocol=v2)


def test_deleted_under_the_reader(shelf: Shelf) -> None:
    """A waiting reader gets an error when the ledger is deleted."""

    async def work(followed: FollowedLedger) -> None:
        await followed.write(range(3))
        following = asyncio.ensure_future(followed.follow())
        await followed.until(2)
        await followed.store.delete(followed.ledger)
        with pytest.raises(NoSuchLedgerMetadata, match=f"ledger {followed.ledger} was deleted while it was read"):
            await following

    tell(shelf, shelf.ids, work)


def test_leaving_a_follower(shelf: Shelf) -> None:
    """The follower returns all that has arrived in bulk, and nothing after aclose."""

    async def work(followed: FollowedLedger) -> None:
        await followed.write(range(40))
        await followed.reader.read_last_add_confirmed()
        follower = followed.reader.follow(max_count=2)
        got = await follower.ready()
        assert got[0].first == 0
        await follower.aclose()
        await follower.aclose()
        assert await follower.ready() == []

    tell(shelf, shelf.ids, work)
