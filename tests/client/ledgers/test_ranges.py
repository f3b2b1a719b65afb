"""Ranges that are read ahead in batches: order, partial responses, bytes in flight, errors."""

import asyncio
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bookie.client import Digest, EntryBatch
from bookie.client.config import ClientConfig
from bookie.client.ledgers.ranges import RangeReader
from bookie.errors import BookieUnavailable, NoSuchEntry
from tests.client.cancelling import Moment, in_spite_of_cancellations
from tests.sim.loop import VirtualLoop

DIGEST = Digest.of()
CONFIG = ClientConfig(bytes_in_flight_max=1 << 16)
SIZE = 4096


class Source:
    """Answers batch reads out of order, with as many entries as the test wants, and counts those in flight."""

    def __init__(self, sizes: list[int], seed: int = 0, *, bad: int | None = None, way_s: float = 0) -> None:
        self.sizes = sizes
        self.way_s = way_s
        self.random = random.Random(seed)
        self.bad = bad
        self.asked: list[tuple[int, int]] = []
        self.under_way = self.under_way_most = 0

    async def read(self, first: int, last: int | None, max_count: int, max_size: int) -> EntryBatch:
        """Return some entries, or raise NoSuchEntry at the bad one."""
        assert last is not None
        assert max_count == last - first + 1
        self.asked.append((first, last))
        self.under_way += 1
        self.under_way_most = max(self.under_way_most, self.under_way)
        for _ in range(self.random.randrange(5)):
            await asyncio.sleep(0)
        if self.way_s:
            await asyncio.sleep(self.way_s)
        self.under_way -= 1
        if first == self.bad:
            raise NoSuchEntry(f"ledger 7, entry {first}: lost")
        count = self.random.randint(1, max_count)
        if self.bad is not None and first < self.bad:
            count = min(count, self.bad - first)
        sealed = [
            DIGEST.seal(7, entry, bytes(self.sizes[entry]), lac=-1, length=0) for entry in range(first, first + count)
        ]
        while len(sealed) > 1 and sum(map(len, sealed)) > max_size:
            sealed.pop()
        return EntryBatch.of_entries(7, first, sealed, DIGEST)


@given(st.lists(st.integers(0, 3000), min_size=1, max_size=120), st.integers(0, 9), st.integers(0, 30), st.data())
def test_br12_all_entries_in_order(sizes: list[int], seed: int, max_count: int, data: st.DataObject) -> None:
    """BR12: every entry of the range comes once and in order, in batches within the limits."""
    first = data.draw(st.integers(0, len(sizes) - 1))
    last = data.draw(st.integers(first, len(sizes) - 1))

    async def work() -> None:
        source = Source(sizes, seed)
        reader = RangeReader(source.read, first, last, max_count, SIZE, CONFIG)
        seen = []
        async for batch in reader:
            assert max_count == 0 or len(batch) <= max_count
            seen += [(entry.id, len(entry.data)) for entry in batch]
        assert seen == [(entry, sizes[entry]) for entry in range(first, last + 1)]
        assert await reader.ready() == []

    asyncio.run(work())


@given(st.integers(0, 99), st.integers(0, 9))
def test_br12_all_or_an_error(bad: int, seed: int) -> None:
    """BR12: the entries before one that cannot be read come first, then its error, then nothing."""

    async def work() -> None:
        reader = RangeReader(Source([10] * 100, seed, bad=bad).read, 0, 99, 7, SIZE, CONFIG)
        seen: list[int] = []

        async def take() -> None:
            async for batch in reader:
                seen.extend(entry.id for entry in batch)

        with pytest.raises(NoSuchEntry, match=f"entry {bad}: lost"):
            await take()
        assert seen == list(range(bad))
        assert await reader.ready() == []

    asyncio.run(work())


def test_br12_bytes_in_flight() -> None:
    """BR12: if nothing is taken, reading ahead stops at the limit; taking entries makes room for more."""

    async def work() -> None:
        entries = 2000
        source = Source([500] * entries)
        reader = RangeReader(source.read, 0, entries - 1, 0, SIZE, CONFIG)
        seen = 0
        while batches := await reader.ready(1):
            for _ in range(50):
                await asyncio.sleep(0)
            seen += len(batches[0])
            assert reader.bytes_held <= CONFIG.bytes_in_flight_max
        assert seen == entries
        assert 1 < source.under_way_most <= 16

    asyncio.run(work())


@pytest.mark.parametrize(("way_s", "most"), [(0.0, 2), (0.0002, 2), (0.0015, 5), (0.05, 16)])
def test_a_long_way_is_filled(way_s: float, most: int) -> None:
    """Few requests are in flight if responses come at once, and more the longer they take, up to a limit."""

    async def work() -> None:
        source = Source([10] * 9000, way_s=way_s)
        reader = RangeReader(source.read, 0, 8999, 0, SIZE, ClientConfig())
        assert sum([len(batch) async for batch in reader]) == 9000
        assert source.under_way_most == most

    VirtualLoop().run(work())


def test_bulk() -> None:
    """All batches that have arrived are returned at once."""

    async def work() -> None:
        reader = RangeReader(Source([10] * 1000).read, 0, 999, 10, SIZE, CONFIG)
        assert len(await reader.ready(1)) == 1
        for _ in range(200):
            await asyncio.sleep(0)
        assert len(await reader.ready()) > 5

    asyncio.run(work())


def test_an_entry_above_all_limits() -> None:
    """An entry larger than the limit of bytes in flight is read all the same, alone."""

    async def work() -> None:
        sizes = [10, 200_000, 10, 200_000, 200_000, 10]
        reader = RangeReader(Source(sizes).read, 0, 5, 0, SIZE, CONFIG)
        assert [len(entry.data) async for batch in reader for entry in batch] == sizes

    asyncio.run(work())


def test_leaving_early() -> None:
    """Nothing is outstanding after aclose, which may be called twice, or before the first read."""

    async def work() -> None:
        source = Source([10] * 1000)
        reader = RangeReader(source.read, 0, 999, 10, SIZE, CONFIG)
        await reader.ready(1)
        await reader.aclose()
        await reader.aclose()
        asked = len(source.asked)
        assert await reader.ready() == []
        assert len(source.asked) == asked
        await RangeReader(source.read, 0, 999, 10, SIZE, CONFIG).aclose()
        assert len(asyncio.all_tasks()) == 1

    asyncio.run(work())


def test_what_is_no_error_of_a_bookie() -> None:
    """An unexpected error ends the iteration, too."""

    async def broken(*_: object) -> EntryBatch:
        raise RuntimeError("a bug")

    async def work() -> None:
        with pytest.raises(RuntimeError, match="a bug"):
            await RangeReader(broken, 0, 9, 1, SIZE, CONFIG).ready()

    asyncio.run(work())


def test_br12_a_request_that_is_cancelled_ends_the_range() -> None:
    """BR12: the caller gets an error, and neither waits for ever nor misses entries, if all tasks but its own end."""

    async def work() -> None:
        reader = RangeReader(Source([10] * 100, way_s=0.01).read, 0, 99, 7, SIZE, CONFIG)
        reading = asyncio.ensure_future(reader.ready(1))
        await asyncio.sleep(0)
        for task in asyncio.all_tasks() - {asyncio.current_task(), reading}:
            task.cancel()
        with pytest.raises(BookieUnavailable, match="a request for a part of the range was cancelled"):
            await asyncio.wait_for(reading, 30)

    asyncio.run(work())


@pytest.mark.parametrize("moment", Moment)
def test_br12_a_cancelled_call_does_not_swallow_the_error(moment: Moment) -> None:
    """BR12: the error is raised by the first call that is not cancelled, and the range never seems to end before."""

    async def work() -> None:
        reader = RangeReader(Source([10] * 100, bad=50).read, 0, 99, 7, SIZE, CONFIG)
        seen: list[int] = []

        async def take() -> None:
            while batches := await in_spite_of_cancellations(lambda: reader.ready(1), moment):
                seen.extend(entry.id for batch in batches for entry in batch)

        with pytest.raises(NoSuchEntry, match="entry 50: lost"):
            await take()
        assert seen == list(range(50))

    asyncio.run(work())
