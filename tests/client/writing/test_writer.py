"""The writer's core on real bookies: adds, chosen ids, syncs, LACs, the end, and every way in which bookies fail."""

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from bookie._fast.client.write_window import Add
from bookie.client.bookies import MetadataStore
from bookie.client.ledgers.writer import LedgerWriter
from bookie.client.wire.flags import Flags
from bookie.errors import (
    AddQuorumTimeout,
    BookKeeperError,
    ClientClosed,
    DuplicateEntryId,
    IncorrectParameter,
    LedgerClosed,
    LedgerFenced,
    MetadataVersionConflict,
    NotEnoughBookies,
    UnauthorizedAccess,
    WriteError,
)
from bookie.metadata.records.ledger_metadata import LedgerMetadata, LedgerState
from tests.client.writing.cluster import DIGEST, Client, client, run, uri_of
from tests.fixtures.bookies import BookieProcess

COUNT = 2000
SLOW_S = 3.0
"""The time limit where one bookie stands still: the others answer within it on a slow disk too."""
DEAD, DEAD_TOO = "127.0.0.1:1", "127.0.0.2:1"
"""Bookies that refuse connections."""


def payload(k: int) -> bytes:
    """Return a payload of varying size that identifies its entry."""
    return b"%d." % k * (k % 97)


async def append_all(writer: LedgerWriter, count: int, first: int = 0) -> list[Add]:
    """Add entries as fast as there is room."""
    return [await writer.append_async(payload(k)) for k in range(first, first + count)]


def append_from_thread(writer: LedgerWriter, ids: range) -> list[Add]:
    """Add entries from another thread. Where there is no room, wait for it as the blocking client does."""
    adds = []
    for k in ids:
        add = writer.append_at_once(payload(k))
        if add is None:
            assert writer._loop is not None
            add = asyncio.run_coroutine_threadsafe(writer.append_async(payload(k)), writer._loop).result(60)
        adds.append(add)
    return adds


async def outcome(adds: list[Add]) -> list[int | BookKeeperError]:
    """Return ids and errors."""
    found: list[int | BookKeeperError] = []
    for add in adds:
        try:
            found.append(await add)
        except BookKeeperError as error:
            found.append(error)
    return found


def by_id(bookies: list[BookieProcess], bookie: str) -> BookieProcess:
    """Return the process of a bookie."""
    return next(one for one in bookies if one.id == bookie)


@pytest.mark.parametrize("v2", [True, False], ids=["V2", "V3"])
def test_a_ledger_is_written(five: list[BookieProcess], v2: bool) -> None:
    """Ledgers are written, striped or not, from the loop and a thread; they are closed once; closed handles refuse."""

    async def scenario() -> None:
        async with client(uri_of(five[0]), use_v2_wire_protocol=v2, outstanding_max=100) as c:
            for sizes in ((3, 3, 2), (4, 2, 2), (4, 3, 1), (1, 1, 1)):
                writer = await c.create(sizes)
                adds = await append_all(writer, COUNT // 2)
                more = await asyncio.to_thread(append_from_thread, writer, range(COUNT // 2, COUNT))
                assert await asyncio.to_thread(more[-1].wait, 60)
                assert await asyncio.gather(*adds, *more) == list(range(COUNT))
                assert await writer.append(payload(COUNT)) == COUNT
                assert (writer.last_add_confirmed, writer.pending) == (COUNT, 0)
                assert writer.confirmed_length == writer.length
                await writer.close()
                assert (await writer.close()).state is LedgerState.CLOSED
                await c.check(writer, [payload(k) for k in range(COUNT + 1)])
                with pytest.raises(LedgerClosed, match=f"ledger {writer.ledger}: no more entries can be added"):
                    writer.try_append(b"late")
            with pytest.raises(IncorrectParameter, match="the limit is"):
                (await c.create((1, 1, 1))).try_append(bytes(6 << 20))

    run(scenario())


def test_outstanding_adds_are_bounded(five: list[BookieProcess]) -> None:
    """Pending adds stay within the limits, by count and by bytes; further adds wait."""
    bookie = five[0]

    async def scenario() -> None:
        async with client(uri_of(bookie), outstanding_max=8, outstanding_bytes_max=1 << 20) as c:
            for size in (10, 300_000):
                writer = await c.create((1, 1, 1))
                for _ in range(50):
                    await writer.append_async(bytes(size))
                    assert writer.pending <= (8 if size == 10 else 3)
                await writer.flush()
                assert writer.last_add_confirmed == 49
                await writer.close()

    run(scenario())


def test_ids_of_ones_own(five: list[BookieProcess]) -> None:
    """Chosen ids are added in any order and acknowledged in theirs; adds after a gap fail when the ledger is closed."""
    bookie = five[0]

    async def scenario() -> None:
        async with client(uri_of(bookie)) as c:
            writer = await c.create((1, 1, 1), advanced=True)
            adds = [await writer.append_async(payload(k), k) for k in (3, 1, 0, 2, 7)]
            assert await asyncio.gather(*adds[:4]) == [3, 1, 0, 2]
            for taken in (2, 7):
                with pytest.raises(DuplicateEntryId, match=f"entry {taken}: it was added before"):
                    await writer.append(b"", taken)
            await writer.close()
            assert isinstance((await outcome(adds[4:]))[0], LedgerClosed)
            metadata = (await c.context.metadata.read(writer.ledger)).value
            assert (metadata.last_entry, metadata.length) == (3, sum(len(payload(k)) for k in range(4)))

    run(scenario())


def test_deferred_syncs_and_force(five: list[BookieProcess]) -> None:
    """Acknowledged adds raise the LAC when they are forced; a close forces them."""

    async def scenario() -> None:
        async with client(uri_of(five[0])) as c:
            writer = await c.create((2, 2, 2), deferred_sync=True)
            await writer.force()
            await append_all(writer, 10)
            await writer.flush()
            assert writer.last_add_confirmed == -1
            await writer.force()
            assert writer.last_add_confirmed == 9
            await append_all(writer, 5, 10)
            await writer.flush()
            await writer.close()
            await c.check(writer, [payload(k) for k in range(15)])
            with pytest.raises(LedgerClosed):
                await writer.force()

    run(scenario())


def test_explicit_lac(five: list[BookieProcess]) -> None:
    """L7: while nothing is added, bookies are sent the LAC of the last add, so that tailing readers see it (OP6)."""

    async def scenario() -> None:
        async with client(uri_of(five[0]), explicit_lac_interval_s=0.01) as c:
            writer = await c.create((3, 3, 2))
            assert await writer.append(b"one") == 0
            holders: set[str] = set()
            while len(holders) < 2:
                for bookie in writer.known.metadata.segments[0].bookies:
                    answer = await c.context.bookies.read_lac(bookie, writer.ledger)
                    if (answer.packet or b"")[8:16] == bytes(8):
                        holders.add(bookie)
            await writer.close()

    run(scenario())


@pytest.mark.crash
def test_killed_bookies_are_replaced(five: list[BookieProcess]) -> None:
    """Two bookies are killed while a ledger is written: all adds are acknowledged, in new segments, and kept."""

    async def scenario() -> None:
        async with client(uri_of(five[0]), outstanding_max=200) as c:
            writer = await c.create((3, 2, 2), [bookie.id for bookie in five[2:5]])
            adds = await append_all(writer, COUNT)
            five[3].kill()
            adds += await append_all(writer, COUNT, COUNT)
            five[4].kill()
            adds += await append_all(writer, COUNT, 2 * COUNT)
            assert await outcome(adds) == list(range(3 * COUNT))
            await writer.close()
            for bookie, ready in [(bookie, bookie.launch()) for bookie in five[3:5]]:
                bookie.ready(ready)
            metadata = await c.check(writer, [payload(k) for k in range(3 * COUNT)])
            assert len(metadata.segments) >= 2
            assert not {five[3].id, five[4].id} & set(metadata.segments[-1].bookies)

    run(scenario())


@pytest.mark.thorough
def test_paused_bookie(five: list[BookieProcess]) -> None:
    """A hung bookie delays no add if the ack quorum does not need it, and is replaced after its timeout."""

    async def scenario() -> None:
        async with client(uri_of(five[0]), add_timeout_s=SLOW_S) as c:
            ensemble = [bookie.id for bookie in five[:3]]
            writer = await c.create((3, 3, 2), ensemble)
            await writer.append(payload(0))
            five[2].freeze()
            try:
                count = 1
                while writer.known.metadata.segments[-1].bookies == tuple(ensemble):
                    assert await writer.append(payload(count)) == count
                    count += 1
                await writer.close()
            finally:
                five[2].thaw()
            metadata = await c.check(writer, [payload(k) for k in range(count)])
            assert metadata.segments[-1].bookies[:2] == tuple(ensemble[:2])
            assert metadata.segments[-1].bookies[2] not in ensemble

    run(scenario())


@pytest.mark.thorough
def test_read_only_bookie(five: list[BookieProcess], new_bookies: Callable[..., list[BookieProcess]]) -> None:
    """A bookie that became read-only is replaced, even if ensemble changes are delayed."""
    (read_only,) = new_bookies(1, metadataServiceUri=uri_of(five[0]), forceReadOnlyBookie="true")
    read_only.start()

    async def scenario() -> None:
        for delay in (False, True):
            async with client(uri_of(five[0]), delay_ensemble_change=delay) as c:
                writer = await c.create((3, 3, 2), [five[0].id, five[1].id, read_only.id])
                await append_all(writer, 100)
                await writer.flush()
                while read_only.id in writer.known.metadata.segments[-1].bookies:
                    await writer.append(payload(writer.last_add_pushed + 1))
                await writer.close()
                await c.check(writer, [payload(k) for k in range(writer.last_add_pushed + 1)])

    run(scenario())


def test_delayed_ensemble_change(five: list[BookieProcess]) -> None:
    """With delayEnsembleChange a bookie is replaced only when the ack quorum needs another one."""

    async def scenario() -> None:
        async with client(uri_of(five[0]), delay_ensemble_change=True) as c:
            writer = await c.create((3, 3, 2), [five[0].id, five[1].id, DEAD])
            for k in range(100):
                await writer.append(payload(k))
            assert len(writer.known.metadata.segments) == 1
            await writer.close()
            await c.check(writer, [payload(k) for k in range(100)])
            writer = await c.create((3, 3, 2), [five[0].id, DEAD, DEAD_TOO])
            for k in range(100):
                await writer.append(payload(k))
            assert not {DEAD, DEAD_TOO} & set(writer.known.metadata.segments[-1].bookies)
            await writer.close()
            await c.check(writer, [payload(k) for k in range(100)])

    run(scenario())


def test_fenced_under_the_writer(five: list[BookieProcess]) -> None:
    """L8, L12: a fence ends the writer: pending adds fail in order, and nothing more is acknowledged."""

    async def scenario() -> None:
        async with client(uri_of(five[0])) as c:
            writer = await c.create((3, 3, 2))
            await append_all(writer, 100)
            await writer.flush()
            for bookie in writer.known.metadata.segments[0].bookies:
                await c.context.bookies.read(bookie, writer.ledger, -1, flags=Flags.FENCE, master_key=DIGEST.master_key)
            adds = await append_all(writer, 100, 100)
            ends = await outcome(adds)
            assert all(isinstance(end, LedgerFenced) for end in ends)
            assert f"ledger {writer.ledger}, entry 100: bookie " in str(ends[0])
            with pytest.raises(LedgerClosed, match="Another client is recovering"):
                await writer.append(b"late")
            await writer.close()
            await c.check(writer, [payload(k) for k in range(100)])

    run(scenario())


def test_too_few_bookies(five: list[BookieProcess]) -> None:
    """ST7: without a replacement bookie, adds fail in order (L8), and the ledger ends with the confirmed entries."""

    async def scenario() -> None:
        async with client(uri_of(five[0]), add_timeout_s=SLOW_S) as c:
            c.context.placement.bookies_changed(frozenset(bookie.id for bookie in five[:3]), frozenset())
            writer = await c.create((3, 3, 3))
            adds = await append_all(writer, 100)
            await writer.flush()
            five[2].freeze()
            try:
                adds += await append_all(writer, 100, 100)
                ends = await outcome(adds)
                assert (await writer.close()).state is LedgerState.CLOSED
            finally:
                five[2].thaw()
            assert ends[:100] == list(range(100))
            assert all(isinstance(end, NotEnoughBookies) for end in ends[100:])
            await c.check(writer, [payload(k) for k in range(100)])

    run(scenario())


def test_wrong_password(five: list[BookieProcess]) -> None:
    """A bookie that has another key for the ledger ends the writer."""
    bookie = five[0]

    async def scenario() -> None:
        async with client(uri_of(bookie)) as c:
            writer = await c.create((1, 1, 1), [bookie.id])
            await c.context.bookies.add(
                bookie.id, writer.ledger, 0, DIGEST.seal(writer.ledger, 0, b"x", lac=-1, length=1), b"k" * 20
            )
            with pytest.raises(UnauthorizedAccess, match=f"ledger {writer.ledger}, entry 0: bookie {bookie.id}"):
                await writer.append(b"x")

    run(scenario())


def test_quorum_timeout(five: list[BookieProcess]) -> None:
    """addEntryQuorumTimeoutSec ends a ledger whose adds reach no ack quorum in that time."""

    async def scenario() -> None:
        async with client(uri_of(five[0]), add_quorum_timeout_s=SLOW_S) as c:
            writer = await c.create((2, 2, 2), [five[0].id, five[1].id])
            await writer.append(b"one")
            five[1].freeze()
            try:
                with pytest.raises(AddQuorumTimeout, match=r"entry 1 is not on 2 bookies after 3 s"):
                    await writer.append(b"two")
            finally:
                five[1].thaw()
            await writer.close()
            await c.check(writer, [b"one"])

    run(scenario())


class Gate:
    """A metadata store whose writes wait for the test; `before` runs ahead of each."""

    def __init__(self, store: MetadataStore) -> None:
        self.store = store
        self.open = asyncio.Event()
        self.asked = asyncio.Event()
        self.conflicts = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.store, name)

    async def write(self, ledger: int, metadata: LedgerMetadata, version: int) -> Any:
        """Wait, then write to the store."""
        self.asked.set()
        await self.open.wait()
        for _ in range(self.conflicts):
            self.conflicts -= 1
            now = await self.store.read(ledger)
            await self.store.write(ledger, now.value, now.version)
        return await self.store.write(ledger, metadata, version)


def gates(c: Client) -> Gate:
    """Return the gate in front of a client's store."""
    gate = c.context.metadata
    assert isinstance(gate, Gate)
    return gate


def test_nothing_is_acknowledged_before_the_store_has_it(five: list[BookieProcess]) -> None:
    """L6: bookies fail one after another while the store hangs; acks wait for it, and survive conflicting changes."""

    async def scenario() -> None:
        async with client(uri_of(five[0]), wrap=Gate, add_timeout_s=SLOW_S) as c:
            gate = gates(c)
            writer = await c.create((3, 3, 2), [five[0].id, five[1].id, DEAD])
            five[1].freeze()
            try:
                adds = [await writer.append_async(payload(0))]
                await gate.asked.wait()
                adds += await append_all(writer, 50, 1)
                while not writer._replacer.waiting:
                    await c.context.bookies.bookie_info(five[0].id)  # answers come and go meanwhile
                assert writer.last_add_confirmed == -1
                gate.conflicts = 2
                gate.open.set()
                assert await outcome(adds) == list(range(51))
            finally:
                five[1].thaw()
            await writer.close()
            metadata = await c.check(writer, [payload(k) for k in range(51)])
            assert len(metadata.segments) == 1
            assert not {five[1].id, DEAD} & set(metadata.segments[0].bookies)

    run(scenario())


@pytest.mark.parametrize(
    ("state", "error"), [(LedgerState.CLOSED, LedgerClosed), (LedgerState.IN_RECOVERY, LedgerFenced)]
)
def test_ledger_lost_in_the_store(five: list[BookieProcess], state: LedgerState, error: type[BookKeeperError]) -> None:
    """L12: a writer that finds the ledger closed or in recovery at an ensemble change acknowledges nothing more."""

    async def scenario() -> None:
        async with client(uri_of(five[0])) as c:
            writer = await c.create((3, 3, 3), [five[0].id, five[1].id, DEAD])
            store = c.context.metadata
            now = await store.read(writer.ledger)
            end = (5, 99) if state is LedgerState.CLOSED else (-1, 0)
            other = replace(now.value, state=state, last_entry=end[0], length=end[1])
            await store.write(writer.ledger, other, now.version)
            ends = await outcome(await append_all(writer, 20))
            assert {type(end) for end in ends} == {error}
            if state is LedgerState.CLOSED:
                with pytest.raises(MetadataVersionConflict, match="another client closed it at entry 5, length 99"):
                    await writer.close()
            else:
                assert (await store.read(writer.ledger)).value.state is state

    run(scenario())


def test_deferred_syncs_bear_no_change(five: list[BookieProcess]) -> None:
    """Bookies with unsynced, acknowledged entries cannot be replaced, so the ledger ends."""

    async def scenario() -> None:
        async with client(uri_of(five[0])) as c:
            writer = await c.create((3, 3, 3), [five[0].id, five[1].id, DEAD], deferred_sync=True)
            with pytest.raises(WriteError, match="cannot be moved"):
                await writer.append(b"two")

    run(scenario())


@pytest.mark.thorough
def test_a_bookie_that_was_away_is_not_trusted_with_a_force(five: list[BookieProcess]) -> None:
    """BP-14: a bookie is killed and restarted between an unsynced, acknowledged add and its force.

    Its answer to the force concerns only what it still has, so the ledger ends where it was forced last.
    """

    async def scenario() -> None:
        async with client(uri_of(five[0])) as c:
            writer = await c.create((2, 2, 2), [five[0].id, five[1].id], deferred_sync=True)
            await append_all(writer, 5)
            await writer.flush()
            await writer.force()
            await append_all(writer, 5, 5)
            await writer.flush()
            five[1].kill()
            five[1].start()
            while writer.failure is None:
                with contextlib.suppress(BookKeeperError):
                    await writer.force()
                assert writer.last_add_confirmed == 4
            with pytest.raises(LedgerClosed, match="not synced cannot be moved"):
                await writer.force()
            with pytest.raises(WriteError, match="entries 5 to 9 were acknowledged, but could not be synced"):
                await writer.close()
            await c.check(writer, [payload(k) for k in range(5)])

    run(scenario())


def test_closed_client(five: list[BookieProcess]) -> None:
    """When the client closes, pending adds end with ClientClosed, and so does everything later."""
    bookie = five[0]

    async def scenario() -> None:
        async with client(uri_of(bookie)) as c:
            writer = await c.create((1, 1, 1), [bookie.id])
            await writer.append(b"one")
            bookie.freeze()
            add = await writer.append_async(b"two")
            await asyncio.sleep(0)
            await c.context.bookies.close()
            bookie.thaw()
            with pytest.raises(ClientClosed):
                await add
            with pytest.raises(ClientClosed):
                await writer.append(b"three")
            with pytest.raises(ClientClosed):
                await writer.close()

    run(scenario())
