"""Known bugs of BookKeeper clients, each with its issue: real bookies, with the failure between them and a client."""

import asyncio
import shutil
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from bookie.client import EntryBatch
from bookie.client.ledgers.opening import Credentials, open_ledger, open_reader
from bookie.client.ledgers.reader import LedgerReader
from bookie.client.ledgers.writer import LedgerWriter
from bookie.client.wire.answers_v3 import ReadAnswer
from bookie.errors import BookieUnavailable, LedgerClosed, LedgerFenced
from bookie.metadata.records.ledger_metadata import LedgerMetadata, LedgerState, Segment
from tests.client.writing.cluster import DIGEST, Client, client, run, uri_of
from tests.fixtures.bookies import BookieProcess

OURS = Credentials(b"pw")
GONE = ("127.0.0.1:1", "127.0.0.2:1", "127.0.0.3:1")


class Deaf:
    """Bookies of which two lose one kind of read: one the fences (`fence`), another forward reads (`forward`)."""

    def __init__(self, bookies: Any, fence: str, forward: str) -> None:
        self._bookies = bookies
        self._deaf = (fence, forward)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._bookies, name)

    async def read(self, bookie: str, ledger: int, entry: int, **options: Any) -> ReadAnswer:
        """Raise an error for a read that is lost."""
        if bookie == self._deaf[entry >= 0]:
            raise BookieUnavailable("cut off")
        answer: ReadAnswer = await self._bookies.read(bookie, ledger, entry, **options)
        return answer


async def recovered(c: Client, ledger: int, bookies: Any = None) -> LedgerMetadata:
    """Open the ledger with recovery through these bookies, and return its metadata."""
    context = c.context if bookies is None else replace(c.context, bookies=bookies)
    known, _ = await open_ledger(context, ledger, OURS, recovery=True)
    return known.metadata


async def add(c: Client, writer: LedgerWriter, bookie: str, entry: int) -> None:
    """Add an entry like a writer whose network delivers it late."""
    stored = DIGEST.seal(writer.ledger, entry, b"late", lac=entry - 1, length=4 * (entry + 1))
    await c.context.bookies.add(bookie, writer.ledger, entry, stored, DIGEST.master_key)


def test_bug_1_who_denies_an_entry_to_a_recovery_is_fenced(five: list[BookieProcess]) -> None:
    """ST5, L1, L9, bookkeeper#2614: the fence missed one bookie, and the only holder of an entry could not be read.

    The ledger is closed before that entry, so the bookie that the fence missed must not accept it after it denied it.
    """

    async def scenario() -> None:
        async with client(uri_of(five[0])) as c:
            missed, holder, third = chosen = [bookie.id for bookie in five[1:4]]
            writer = await c.create((3, 3, 2), chosen)
            await writer.append(b"late")
            await writer.flush()
            await add(c, writer, holder, 1)
            metadata = await recovered(c, writer.ledger, Deaf(c.context.bookies, missed, holder))
            assert (metadata.state, metadata.last_entry) == (LedgerState.CLOSED, 0)
            for bookie in (missed, third):
                with pytest.raises(LedgerFenced):
                    await add(c, writer, bookie, 1)

    run(scenario())


def test_bug_11_another_bookie_at_the_same_address(five: list[BookieProcess]) -> None:
    """ST5, L1, L12, bookkeeper#4812: an idle writer's ledger was recovered, and its bookie replaced by an empty one.

    The new bookie accepts the add, but the writer must not acknowledge it.
    """
    bookie = five[1]

    async def scenario() -> None:
        async with client(uri_of(five[0])) as c, client(uri_of(five[0])) as other:
            writer = await c.create((1, 1, 1), [bookie.id])
            for payload in (b"one", b"two"):
                await writer.append(payload)
            metadata = await recovered(other, writer.ledger)
            assert metadata.last_entry == 1
            await asyncio.to_thread(replace_by_an_empty_one, c)
            with pytest.raises(LedgerClosed):
                await writer.append(b"three")
            assert await c.context.metadata.read(writer.ledger) == await other.context.metadata.read(writer.ledger)
            assert (await c.context.metadata.read(writer.ledger)).value == metadata

    def replace_by_an_empty_one(c: Client) -> None:
        bookie.stop()
        for directory in (bookie.journal, bookie.ledgers):
            shutil.rmtree(directory)
        c.context.metadata.driver.cookies.remove(bookie.id)  # type: ignore[attr-defined]  # it is the real store
        bookie.start()

    run(scenario())


def test_bug_37_a_reader_whose_bookies_were_retired(five: list[BookieProcess]) -> None:
    """L11, bookkeeper#4613: a reader whose bookies were retired learns the new ones from the metadata."""

    async def scenario() -> None:
        async with client(uri_of(five[0])) as c:
            for how in ("read", "batch_read", "batches"):
                writer = await c.create((1, 1, 1), [five[1].id])
                await writer.append(b"late")
                metadata = await writer.close()
                store = c.context.metadata
                version = (await store.read(writer.ledger)).version
                readers = []
                for gone in GONE:
                    moved = replace(metadata, segments=(Segment(0, (gone,)),))
                    version = (await store.write(writer.ledger, moved, version)).version
                    readers.append(await open_reader(c.context, writer.ledger, OURS, recovery=True))
                await store.write(writer.ledger, metadata, version)
                for reader in readers:
                    assert [bytes(one.data) for one in await read(reader, how)] == [b"late"]

    async def read(reader: LedgerReader, how: str) -> Sequence[Any]:
        if how == "batches":
            batches: list[EntryBatch] = [batch async for batch in reader.batches(0, 0)]
            return [entry for batch in batches for entry in batch]
        return list(await (reader.read(0, 0) if how == "read" else reader.batch_read(0)))

    run(scenario())
