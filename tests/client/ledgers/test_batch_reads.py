"""Batch reads of ledgers on real bookies, in both protocols, and the single reads that replace them."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from bookie.client import EntryBatch
from bookie.client.ledgers.reader import LedgerReader
from bookie.errors import DigestMismatch, IncorrectParameter, NoSuchEntry, ReadError
from tests.client.ledgers.odd_bookie import TORN, batch, odd_bookie, single
from tests.client.ledgers.shelf import DIGEST, Shelf, metadata, payload, sealed
from tests.reference import record as model
from tests.reference import wire_v2

ENTRIES = 40


def ids(batch: EntryBatch) -> list[int]:
    """Return the entry ids of a batch, after checking their payloads."""
    assert all(bytes(entry.data) == payload(entry.id) for entry in batch)
    return [entry.id for entry in batch]


@pytest.fixture(scope="module")
def closed(shelf: Shelf) -> int:
    """A ledger of 40 entries, complete on all three bookies."""
    return shelf.ledger(range(ENTRIES))


# The reasons for which entries are read singly, and the two ways of batch reads.
WAYS: dict[str, dict[str, Any]] = {
    "v2": {"use_v2_wire_protocol": True},
    "v3": {},
    "off": {"batch_read_enabled": False},
    "striped": {"use_v2_wire_protocol": True},
    "off in V2": {"batch_read_enabled": False, "use_v2_wire_protocol": True},
}


def quorums(way: str) -> tuple[int, int, int]:
    """Return the quorum sizes for a way of reading; all bookies hold all entries anyway."""
    return (3, 2, 2) if way == "striped" else (3, 3, 2)


@pytest.mark.parametrize("way", WAYS)
def test_br2_br6_same_result_however_it_is_read(shelf: Shelf, closed: int, way: str) -> None:
    """BR2, BR6, BR9: counts, sizes and ends mean the same with batch reads, without them, and for striped ledgers."""

    async def work(reader: LedgerReader) -> None:
        assert ids(await reader.batch_read(0)) == list(range(ENTRIES))
        assert ids(await reader.batch_read(5, 0, 0)) == list(range(5, ENTRIES))
        assert ids(await reader.batch_read(5, 7)) == list(range(5, 12))
        assert ids(await reader.batch_read(35, 7)) == list(range(35, ENTRIES))
        assert ids(await reader.batch_read(3, 2**31 - 1, 2**62)) == list(range(3, ENTRIES))
        assert ids(await reader.batch_read(3, 2**62, -1)) == list(range(3, ENTRIES))
        assert ids(await reader.batch_read_unconfirmed(38, 7)) == [38, 39]
        few = await reader.batch_read(10, 0, 400)
        assert few.first == 10
        assert 1 < len(few) < 10
        assert few.nbytes + 36 <= 400
        assert ids(await reader.batch_read(10, 0, 1)) == [10]
        for wrong in (-1, -(2**40)):
            with pytest.raises(IncorrectParameter, match="max_count"):
                await reader.batch_read(0, wrong)
            with pytest.raises(IncorrectParameter, match="max_count"):
                await reader.batch_read_unconfirmed(0, wrong)
        with pytest.raises(IncorrectParameter, match="max_size -1"):
            await reader.batch_read_unconfirmed(0, 1, -1)

    value = metadata({0: shelf.ids}, ENTRIES - 1, quorums=quorums(way))
    shelf.read(closed, value, work, **WAYS[way])


def test_br1_parameters(shelf: Shelf, closed: int, v2: bool) -> None:
    """BR1: every call refuses a start below 0 or above the LAC, and says what is wrong."""

    async def work(reader: LedgerReader) -> None:
        for call in (reader.batch_read, reader.batch_read_unconfirmed):
            with pytest.raises(IncorrectParameter, match="entries -1 to -1 are not a range"):
                await call(-1, 5)
        with pytest.raises(ReadError, match=f"ledger {closed}, entry 40: above the LAC 39"):
            await reader.batch_read(ENTRIES, 5)
        with pytest.raises(NoSuchEntry, match=f"ledger {closed}, entry 40: no good answer from 127"):
            await reader.batch_read_unconfirmed(ENTRIES, 5)
        with pytest.raises(IncorrectParameter, match="entries 5 to 4 are not a range"):
            reader.batches(5, 4)
        with pytest.raises(IncorrectParameter, match="entries 5 to 4 are not a range"):
            await reader.read(5, 4)
        with pytest.raises(ReadError, match="above the LAC"):
            await reader.read(5, ENTRIES)
        with pytest.raises(IncorrectParameter, match="max_count"):
            reader.follow(0, max_count=-1)

    shelf.read(closed, metadata({0: shelf.ids}, ENTRIES - 1), work, use_v2_wire_protocol=v2)


def test_br5_never_above_the_lac(shelf: Shelf, v2: bool) -> None:
    """BR5, L7: entries above the LAC are on the bookies, and only the unconfirmed call returns them."""
    ledger = shelf.ledger(range(10))

    async def work(reader: LedgerReader) -> None:
        assert await reader.read_last_add_confirmed() == 8
        assert ids(await reader.batch_read(5)) == [5, 6, 7, 8]
        assert ids(await reader.batch_read_unconfirmed(5)) == [5, 6, 7, 8, 9]
        assert ids(await reader.read_unconfirmed(7, 9)) == [7, 8, 9]
        assert reader.view.lac == 8

    shelf.read(ledger, metadata({0: shelf.ids}, None), work, use_v2_wire_protocol=v2)


@pytest.mark.parametrize("k", [0, 1, 6])
def test_br3_damage_goes_to_the_next_replica(shelf: Shelf, v2: bool, k: int) -> None:
    """BR3, L14: if the first entry is damaged, the next replica is asked; damage later on ends the batch before it."""
    ledger = shelf.ledger(range(10), places=(1, 2))
    shelf.put(ledger, 0, range(10), damaged=[k])

    async def work(reader: LedgerReader) -> None:
        first = await reader.batch_read(0)
        assert ids(first) == list(range(k or 10))
        whole = [entry async for batch in reader.batches(0, 9, max_count=20) for entry in ids(batch)]
        assert whole == list(range(10))
        assert ids(await reader.read(0, 9)) == list(range(10))

    shelf.read(ledger, metadata({0: shelf.ids}, 9), work, use_v2_wire_protocol=v2, sticky_reads=False)


def test_br3_damaged_everywhere(shelf: Shelf, v2: bool) -> None:
    """BR3, L14: the error names ledger, entry and all bookies, and nothing of the entry is returned."""
    ledger = shelf.ledger(range(3))
    bad = shelf.ledger([], ())
    for place in range(3):
        shelf.put(bad, place, range(3), damaged=[1])

    async def work(reader: LedgerReader) -> None:
        names = ", ".join(shelf.ids[1:] + shelf.ids[:1])
        with pytest.raises(DigestMismatch, match=f"ledger {bad}, entry 1: no good answer from {names}"):
            await reader.batch_read(1)
        with pytest.raises(DigestMismatch, match=f"ledger {bad}, entry 1"):
            await reader.read(0, 2)
        assert ids(await reader.batch_read(0)) == [0]

    shelf.read(bad, metadata({0: shelf.ids}, 2), work, use_v2_wire_protocol=v2)
    assert ledger != bad


def test_br8_a_replica_with_a_gap(shelf: Shelf, v2: bool) -> None:
    """BR8: the entries before a gap in a replica are returned, and the rest is read from another replica."""
    ledger = shelf.ledger(range(10), places=(1, 2))
    shelf.put(ledger, 0, [*range(4), *range(6, 10)])

    async def work(reader: LedgerReader) -> None:
        assert ids(await reader.batch_read(0)) == [0, 1, 2, 3]
        assert [entry async for batch in reader.batches(0, 9) for entry in ids(batch)] == list(range(10))
        assert ids(await reader.batch_read(5)) == list(range(5, 10))

    shelf.read(ledger, metadata({0: shelf.ids}, 9), work, use_v2_wire_protocol=v2)


@pytest.mark.parametrize("enabled", [True, False], ids=["batches", "singles"])
def test_br16_over_an_ensemble_change(shelf: Shelf, v2: bool, enabled: bool) -> None:
    """BR16: a batch ends at an ensemble change; the next batch, and the range reader, use the new ensemble."""
    one, two, three = shelf.ids
    ledger = shelf.ledger(range(6), places=(0, 1))
    shelf.put(ledger, 2, range(6, 12))
    shelf.put(ledger, 1, range(6, 9))
    shelf.put(ledger, 0, range(9, 12))

    async def work(reader: LedgerReader) -> None:
        assert ids(await reader.batch_read(2)) == [2, 3, 4, 5]
        assert ids(await reader.batch_read(6)) == [6, 7, 8]
        assert ids(await reader.batch_read_unconfirmed(8, 3)) == [8]
        assert [entry async for batch in reader.batches(0, 11) for entry in ids(batch)] == list(range(12))
        assert ids(await reader.read(0, 11)) == list(range(12))

    value = metadata({0: (one, two), 6: (two, three), 9: (three, one)}, 11)
    shelf.read(ledger, value, work, use_v2_wire_protocol=v2, batch_read_enabled=enabled)


def on_odd_bookie(
    answer: Callable[[wire_v2.Request], bytes | None],
    shelf: Shelf,
    work: Callable[[LedgerReader], Any],
    places: tuple[int, ...] = (),
    ledger: int | None = None,
    last: int = 9,
    **settings: Any,
) -> None:
    """Run `work` with the reader of a ledger on the odd bookie and those of the shelf, in V2."""

    async def main() -> None:
        async with odd_bookie(answer) as odd:
            value = metadata({0: (odd, *(shelf.ids[place] for place in places))}, last)
            settings.setdefault("use_v2_wire_protocol", True)
            async with shelf.reader(7 if ledger is None else ledger, value, **settings) as reader:
                await work(reader)

    asyncio.run(main())


@pytest.mark.parametrize("body", [b"", b"\0\0", b"\0\0\1\0cut off"])
def test_br7_an_answer_without_entries(shelf: Shelf, body: bytes) -> None:
    """BR7: success without a complete entry is a failure of that replica, and the next one is asked."""
    ledger = shelf.ledger(range(10), places=(1,))

    async def work(reader: LedgerReader) -> None:
        assert ids(await reader.batch_read(0)) == list(range(10))
        assert [entry async for batch in reader.batches(0, 9, max_count=3) for entry in ids(batch)] == list(range(10))

    on_odd_bookie(lambda request: batch(request, body), shelf, work, (1,), ledger)


def test_br6_an_old_bookie(shelf: Shelf) -> None:
    """BR6: a bookie that closes the connection at a batch read is read entry by entry from then on."""
    batches = []

    def answer(request: wire_v2.Request) -> bytes | None:
        if request.op == wire_v2.BATCH_READ:
            batches.append(request)
            return None
        return single(request, sealed(7, request.entry) if request.entry < 10 else None)

    async def work(reader: LedgerReader) -> None:
        assert ids(await reader.batch_read(2, 5)) == [2, 3, 4, 5, 6]
        assert ids(await reader.batch_read(0)) == list(range(10))
        assert len(batches) == 1

    on_odd_bookie(answer, shelf, work)


def test_br10_torn_answers(shelf: Shelf) -> None:
    """BR10: if a bookie closes in the middle of every response, the next replica serves each, and no task is leaked."""
    ledger = shelf.ledger(range(10), places=(1,))
    whole = model.pack([sealed(ledger, entry) for entry in range(10)])

    async def work(reader: LedgerReader) -> None:
        for _ in range(100):
            assert ids(await reader.batch_read(0)) == list(range(10))
        assert len(asyncio.all_tasks()) < 10

    def answer(request: wire_v2.Request) -> bytes:
        return TORN + batch(request, whole)[:200]

    on_odd_bookie(answer, shelf, work, (1,), ledger)


def test_br11_duplicate_answers(shelf: Shelf) -> None:
    """BR11: the second response to a request is dropped."""

    def answer(request: wire_v2.Request) -> bytes:
        if request.op == wire_v2.READ:
            return 2 * single(request, sealed(7, request.entry))
        last = min(request.entry + request.count_max, 10)
        return 2 * batch(request, model.pack([sealed(7, entry) for entry in range(request.entry, last)]))

    async def work(reader: LedgerReader) -> None:
        for start in range(10):
            assert ids(await reader.batch_read(start, 3)) == list(range(start, min(start + 3, 10)))
            assert ids(await reader.read(start, start)) == [start]

    on_odd_bookie(answer, shelf, work)


def test_br5_a_bookie_that_sends_more(shelf: Shelf) -> None:
    """BR5: entries beyond the count or the LAC are cut off; those of other ledgers or other ids are damage."""
    wrong = {0: sealed(8, 0), 1: sealed(7, 2)}

    def answer(request: wire_v2.Request) -> bytes:
        if request.op == wire_v2.READ:
            return single(request, None)
        if request.entry in wrong:
            return batch(request, model.pack([wrong[request.entry]]))
        return batch(request, model.pack([sealed(7, entry) for entry in range(request.entry, 30)]))

    async def work(reader: LedgerReader) -> None:
        assert ids(await reader.batch_read(5, 2)) == [5, 6]
        assert ids(await reader.batch_read(5)) == [5, 6, 7, 8, 9]
        for entry in wrong:
            with pytest.raises(DigestMismatch, match=f"ledger 7, entry {entry}"):
                await reader.batch_read(entry)
        assert DIGEST.overhead == 36

    on_odd_bookie(answer, shelf, work)
