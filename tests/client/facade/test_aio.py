"""Ledgers through the asyncio client, on three of our bookies, in both protocols."""

import asyncio
from typing import Any

import pytest

from bookie.client.aio import BookKeeper
from bookie.errors import ClientClosed, DuplicateEntryId, LedgerClosed, LedgerFenced, NoSuchEntry, NoSuchLedgerMetadata
from bookie.metadata.records.ledger_metadata import LedgerState

PROTOCOLS = pytest.mark.parametrize("v2", [True, False], ids=["v2", "v3"])
PAYLOADS = [b"entry %d" % k * (k % 7) for k in range(500)]


@PROTOCOLS
def test_what_is_written_is_read(uri: str, v2: bool) -> None:
    """What is written is read by a read, by batch reads and by a range, in order; the metadata have the end."""

    async def scenario() -> None:
        async with BookKeeper(uri, useV2WireProtocol=v2) as bk:
            async with bk.create_ledger(
                write_quorum_size=3, digest_type="CRC32C", password=b"p", custom_metadata={"app": b"test"}
            ) as writer:
                assert [await writer.append(payload) for payload in PAYLOADS[:3]] == [0, 1, 2]
                for payload in PAYLOADS[3:]:
                    writer.append_async(payload)
                    await writer.drain()
                await writer.flush()
                assert (await writer.read(499))[0].data == PAYLOADS[499]
            async with bk.open_ledger(writer.id, password=b"p") as reader:
                assert reader.is_closed
                assert reader.last_add_confirmed == 499
                assert reader.length == sum(map(len, PAYLOADS))
                assert dict(reader.custom_metadata) == {"app": b"test"}
                batch = await reader.batch_read(10, max_count=50)
                assert [(entry.id, bytes(entry.data)) for entry in batch] == list(enumerate(PAYLOADS))[10:60]
                assert [bytes(entry.data) for entry in await reader.read(0, 499)] == PAYLOADS
                found = [bytes(entry.data) async for batch in reader.batches() for entry in batch]
                assert found == PAYLOADS
                assert bytes((await reader.read_last_entry()).data) == PAYLOADS[499]

    asyncio.run(scenario())


@PROTOCOLS
def test_recovery_closes_what_a_writer_left(uri: str, v2: bool) -> None:
    """Opening a ledger recovers all acknowledged entries; its writer fails at the next add, once."""

    async def scenario() -> None:
        async with BookKeeper(uri, useV2WireProtocol=v2) as bk:
            writer = await bk.create_ledger(password=b"")
            for payload in PAYLOADS[:20]:
                await writer.append(payload)
            tail = await bk.open_ledger(writer.id, recovery=False)
            assert tail.last_add_confirmed == 18
            assert not tail.is_closed
            reader, again = await asyncio.gather(bk.open_ledger(writer.id), bk.open_ledger(writer.id))
            for handle in (reader, again):
                assert handle.last_add_confirmed == 19
                assert handle.length == sum(map(len, PAYLOADS[:20]))
            assert [bytes(e.data) async for batch in tail.follow(0) for e in batch] == PAYLOADS[:20]
            with pytest.raises(LedgerFenced, match=f"ledger {writer.id}, entry 20: bookie 127.0.0.1"):
                await writer.append(b"late")
            with pytest.raises(LedgerClosed):
                await writer.append(b"later")
            metadata = await bk.ledger_metadata(writer.id)
            assert (metadata.state, metadata.last_entry) == (LedgerState.CLOSED, 19)

    asyncio.run(scenario())


def test_ledgers_are_listed_and_deleted(uri: str) -> None:
    """A deleted ledger cannot be opened; deleting it again does nothing."""

    async def scenario() -> None:
        async with BookKeeper(uri) as bk:
            ids = []
            for _ in range(3):
                async with bk.create_ledger() as writer:
                    ids.append(writer.id)
            assert [ledger async for ledger in bk.list_ledgers() if ledger in ids] == ids
            await bk.delete_ledger(ids[1])
            await bk.delete_ledger(ids[1])
            assert [ledger async for ledger in bk.list_ledgers() if ledger in ids] == [ids[0], ids[2]]
            with pytest.raises(NoSuchLedgerMetadata, match=f"ledger {ids[1]}"):
                await bk.open_ledger(ids[1])
            async with bk.open_ledger(ids[0]) as empty:
                assert empty.last_add_confirmed == -1
                assert [batch async for batch in empty.batches()] == []
                with pytest.raises(NoSuchEntry):
                    await empty.read_last_entry()

    asyncio.run(scenario())


def test_a_writer_that_chooses_ids(uri: str) -> None:
    """Chosen ids may be added in any order, each once; acknowledgements come in the order of the ids."""

    async def scenario() -> None:
        async with BookKeeper(uri) as bk, bk.create_ledger_advanced(1 << 40, password=b"") as writer:
            assert writer.id == 1 << 40
            later = [writer.append_async(k, PAYLOADS[k]) for k in (2, 1)]
            assert not any(add.done() for add in later)
            with pytest.raises(DuplicateEntryId, match="entry 2"):
                await writer.append(2, b"")
            assert await writer.append(0, PAYLOADS[0]) == 0
            assert await asyncio.gather(*later) == [2, 1]
            assert [bytes(entry.data) for entry in await writer.read(0, 2)] == PAYLOADS[:3]

    asyncio.run(scenario())


def test_deferred_sync(uri: str) -> None:
    """With deferred sync the LAC rises with `force` only."""

    async def scenario() -> None:
        async with BookKeeper(uri) as bk:
            async with bk.create_ledger(deferred_sync=True) as writer:
                for payload in PAYLOADS[:5]:
                    await writer.append(payload)
                assert writer.last_add_confirmed == -1
                await writer.force()
                assert writer.last_add_confirmed == 4
            async with bk.open_ledger(writer.id) as reader:
                assert reader.last_add_confirmed == 4

    asyncio.run(scenario())


@PROTOCOLS
def test_closing_the_client_ends_everything(uri: str, v2: bool) -> None:
    """Waiting reads, followers and adds each end with ClientClosed, once, and so does everything later."""

    async def scenario() -> None:
        bk = BookKeeper(uri, useV2WireProtocol=v2)
        await bk.start()
        writer = await bk.create_ledger_advanced()
        await writer.append(0, b"first")
        tail = await bk.open_ledger(writer.id, recovery=False)

        async def follow() -> list[Any]:
            return [batch async for batch in tail.follow(5)]

        waiting: list[asyncio.Future[Any]] = [
            asyncio.ensure_future(follow()),
            asyncio.ensure_future(tail.read_last_add_confirmed_and_entry(5, 4000)),
            writer.append_async(7, b"behind a gap"),
        ]
        await bk.close()
        await bk.close()
        for error in await asyncio.gather(*waiting, return_exceptions=True):
            assert isinstance(error, ClientClosed) or (v2 and not isinstance(error, BaseException)), error
        for late in (writer.append(8, b""), tail.read(0), writer.close()):
            with pytest.raises(ClientClosed):
                await late
        with pytest.raises(ClientClosed):
            await bk.create_ledger()

    asyncio.run(scenario())
