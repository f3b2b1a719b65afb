"""Single reads and LACs of ledgers on real bookies: which replica is asked, how late, and how answers are combined."""

import asyncio
import re
from typing import Any

import pytest

from bookie.client.ledgers.reader import LedgerReader
from bookie.errors import (
    BookieUnavailable,
    IncorrectParameter,
    LedgerRecoveryError,
    NoSuchEntry,
    RequestTimeout,
)
from tests.client.ledgers.shelf import Shelf, metadata, payload
from tests.fixtures.ports import free_port


def texts(batch: Any) -> list[bytes]:
    """Return the payloads."""
    return [bytes(entry.data) for entry in batch]


def test_striped(shelf: Shelf, v2: bool) -> None:
    """Each entry is read from the bookies of its write set, and from no other."""
    ledger = shelf.ledger([], ())
    for place in range(3):
        shelf.put(ledger, place, [entry for entry in range(30) if (place - entry) % 3 < 2])

    async def work(reader: LedgerReader) -> None:
        assert texts(await reader.read(0, 29)) == [payload(entry) for entry in range(30)]
        batches = [batch async for batch in reader.batches(0, 29, max_count=4)]
        assert [entry.id for batch in batches for entry in batch] == list(range(30))
        assert max(map(len, batches)) <= 4

    shelf.read(ledger, metadata({0: shelf.ids}, 29, quorums=(3, 2, 2)), work, use_v2_wire_protocol=v2)


def test_many_at_once(shelf: Shelf, v2: bool) -> None:
    """A range is read that is far larger than a group of reads."""
    ledger = shelf.ledger(range(1000), places=(0,))

    async def work(reader: LedgerReader) -> None:
        batch = await reader.read(0, 999)
        assert texts(batch) == [payload(entry) for entry in range(1000)]
        assert (batch.first, batch.last) == (0, 999)

    shelf.read(ledger, metadata({0: shelf.ids[:1]}, 999), work, use_v2_wire_protocol=v2)


def test_missing_in_the_middle(shelf: Shelf, v2: bool) -> None:
    """The call raises the error of the first missing entry; single reads for a batch stop before it."""
    ledger = shelf.ledger([0, 1, 2, 4, 5, 7], places=(0, 1))

    async def work(reader: LedgerReader) -> None:
        with pytest.raises(NoSuchEntry, match=f"ledger {ledger}, entry 3: no good answer from "):
            await reader.read(0, 7)
        assert [entry.id for entry in await reader.batch_read(0)] == [0, 1, 2]
        with pytest.raises(NoSuchEntry, match="entry 3"):
            await reader.batch_read(3)

    value = metadata({0: shelf.ids[:2]}, 7)
    shelf.read(ledger, value, work, use_v2_wire_protocol=v2, batch_read_enabled=False)
    shelf.read(ledger, value, work, use_v2_wire_protocol=v2)


def test_a_dead_bookie(shelf: Shelf, v2: bool) -> None:
    """A refused connection leads to the next replica; if all are dead, the error says so and names them."""
    ledger = shelf.ledger(range(10), places=(1,))
    dead = [f"127.0.0.1:{free_port()}" for _ in range(2)]

    async def work(reader: LedgerReader) -> None:
        assert texts(await reader.read(0, 9)) == [payload(entry) for entry in range(10)]
        assert [entry.id for entry in await reader.batch_read(2)] == list(range(2, 10))
        assert [entry.id async for batch in reader.batches(0, 9, max_count=2) for entry in batch] == list(range(10))

    async def nobody(reader: LedgerReader) -> None:
        for call in (reader.batch_read, reader.read):
            with pytest.raises(BookieUnavailable, match=re.escape(f"no good answer from {dead[0]}, {dead[1]}")):
                await call(0, 5)

    shelf.read(ledger, metadata({0: (*dead, shelf.ids[1])}, 9), work, use_v2_wire_protocol=v2)
    shelf.read(ledger, metadata({0: dead}, 9), nobody, use_v2_wire_protocol=v2)


def test_br11_a_paused_bookie(shelf: Shelf, v2: bool) -> None:
    """BR11: the next replica is asked if the first does not answer; its late answer is dropped."""
    ledger = shelf.ledger(range(20))

    async def work(reader: LedgerReader) -> None:
        assert len(await reader.batch_read(0)) == 20  # this opens the connections
        assert len(await reader.read(0, 19)) == 20
        with shelf.paused(0):
            assert [entry.id for entry in await reader.batch_read(0)] == list(range(20))
            assert texts(await reader.read(0, 19)) == [payload(entry) for entry in range(20)]
        for start in range(20):
            assert (await reader.batch_read(start, 1)).last == start
            assert (await reader.read(start, start)).last == start

    settings = {"firstSpeculativeReadTimeout": 50, "read_timeout_s": 60}
    shelf.read(ledger, metadata({0: shelf.ids}, 19), work, use_v2_wire_protocol=v2, **settings)


def test_an_error_that_nobody_foresaw(shelf: Shelf, v2: bool) -> None:
    """An unexpected error ends the call and all its requests; no task is leaked."""
    ledger = shelf.ledger(range(1000))

    async def work(reader: LedgerReader) -> None:
        for entry in (0, 1):  # this opens the connections
            assert len(await reader.read(entry, entry)) == 1
        replicas: Any = reader.singles._replicas
        order = replicas.order

        def fails(entry: int) -> Any:
            if entry >= 128:
                raise ValueError("not foreseen")
            return order(entry)

        replicas.order = fails
        before = asyncio.all_tasks()
        with shelf.paused(1), pytest.raises(ValueError, match="not foreseen"):
            await reader.read(0, 999)
        assert asyncio.all_tasks() == before

    shelf.read(ledger, metadata({0: shelf.ids[:2]}, 999), work, use_v2_wire_protocol=v2)


@pytest.mark.thorough
def test_no_speculation_waits_for_the_time_limit(shelf: Shelf) -> None:
    """Without speculative reads, a bookie that does not answer costs the read timeout, which is the error."""
    ledger = shelf.ledger(range(3), places=(0,))

    async def work(reader: LedgerReader) -> None:
        assert len(await reader.read(0, 2)) == 3
        with shelf.paused(0), pytest.raises(RequestTimeout, match=f"ledger {ledger}, entry 0"):
            await reader.batch_read(0)

    value = metadata({0: shelf.ids[:1]}, 2)
    shelf.read(ledger, value, work, speculative_read_first_s=0.0, read_timeout_s=3.0)


def test_sticky_reads(shelf: Shelf, v2: bool) -> None:
    """All entries are read from one bookie until it fails, and then from the next."""
    ledger = shelf.ledger([], ())
    shelf.put(ledger, 0, range(10))
    shelf.put(ledger, 1, range(10, 20))

    async def work(reader: LedgerReader) -> None:
        for first in (0, 10, 0, 10):
            read = [entry.id for start in range(first, first + 9, 3) for entry in await reader.batch_read(start, 3)]
            assert read == list(range(first, first + 9))

    value = metadata({0: shelf.ids[:2]}, 19)
    shelf.read(ledger, value, work, use_v2_wire_protocol=v2, stickyReadSEnabled=True)


def test_lac_of_an_open_ledger(shelf: Shelf, v2: bool) -> None:
    """The LAC is the highest known; bookies without the ledger count as answers; too few answers raise an error."""
    ledger = shelf.ledger(range(10), places=(0,))
    shelf.put(ledger, 1, range(5))
    dead = f"127.0.0.1:{free_port()}"

    async def work(reader: LedgerReader) -> None:
        assert reader.view.lac == -1
        assert await reader.read_last_add_confirmed() == 8
        assert await reader.try_read_last_add_confirmed() == 8
        last = await reader.read_last_entry()
        assert (last.id, bytes(last.data)) == (8, payload(8))
        assert reader.view.length == (10 * len(payload(9)) if v2 else 0)

    async def too_few(reader: LedgerReader) -> None:
        with pytest.raises(BookieUnavailable, match=f"ledger {ledger}: its LAC is unknown"):
            await reader.read_last_add_confirmed()
        assert reader.view.lac <= 8

    async def none(reader: LedgerReader) -> None:
        with pytest.raises(LedgerRecoveryError, match=f"ledger {ledger}: none of {dead} gave a valid answer"):
            await reader.try_read_last_add_confirmed()

    def read(bookies: list[str], quorums: tuple[int, int, int], todo: Any) -> None:
        shelf.read(ledger, metadata({0: bookies}, None, quorums=quorums), todo, use_v2_wire_protocol=v2)

    read(shelf.ids, (3, 3, 1), work)  # with an ack quorum of 2 the first one's answer would not be needed
    read([shelf.ids[0], shelf.ids[1], dead], (3, 3, 2), work)
    read([shelf.ids[0], dead, dead], (3, 3, 2), too_few)
    read([dead], (1, 1, 1), none)


def test_lac_of_an_empty_ledger(shelf: Shelf, v2: bool) -> None:
    """An empty ledger has LAC -1 and no last entry, closed or not."""

    async def work(reader: LedgerReader) -> None:
        assert await reader.read_last_add_confirmed() == -1
        with pytest.raises(NoSuchEntry, match="no entry is acknowledged yet"):
            await reader.read_last_entry()
        assert [batch async for batch in reader.follow()] == []

    async def open_one(reader: LedgerReader) -> None:
        assert await reader.read_last_add_confirmed() == -1
        assert await reader.try_read_last_add_confirmed() == -1

    shelf.read(7, metadata({0: shelf.ids}, -1), work, use_v2_wire_protocol=v2)
    shelf.read(7, metadata({0: shelf.ids}, None), open_one, use_v2_wire_protocol=v2)


@pytest.mark.parametrize("parallel", [False, True])
def test_waiting_for_an_entry(shelf: Shelf, parallel: bool) -> None:
    """The entry comes with the LAC that reaches it; without it the wait ends in time with the present LAC."""
    ledger = shelf.ledger(range(5))

    async def work(reader: LedgerReader) -> None:
        assert await reader.read_last_add_confirmed() == 3
        lac, none = await reader.read_last_add_confirmed_and_entry(4, 50, parallel=parallel)
        assert (lac, none) == (3, None)
        waiting = asyncio.ensure_future(reader.read_last_add_confirmed_and_entry(4, 20_000, parallel=parallel))
        for place in range(3):
            await asyncio.to_thread(shelf.put, ledger, place, [5])
        lac, got = await waiting
        assert lac == 4
        assert got is not None
        assert texts(got) == [payload(4)]
        lac, got = await reader.read_last_add_confirmed_and_entry(2, 0, parallel=parallel)
        assert got is not None
        assert (lac, texts(got)) == (4, [payload(2)])
        for wrong in (-1, 30_000):
            with pytest.raises(IncorrectParameter, match="timeout_ms"):
                await reader.read_last_add_confirmed_and_entry(6, wrong)

    shelf.read(ledger, metadata({0: shelf.ids}, None), work, read_timeout_s=30.0)


def test_waiting_past_the_end(shelf: Shelf) -> None:
    """There is no wait for an entry of a closed ledger."""
    ledger = shelf.ledger(range(5))

    async def work(reader: LedgerReader) -> None:
        assert await reader.read_last_add_confirmed_and_entry(5, 4000) == (4, None)

    shelf.read(ledger, metadata({0: shelf.ids}, 4), work)
