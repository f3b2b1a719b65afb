"""A writer that adds nothing replaces no bookies, whatever happens to those it has."""

import asyncio

import pytest

from tests.client.replication.conftest import comes_true
from tests.client.writing.cluster import client, run, uri_of
from tests.fixtures.bookies import BookieProcess


@pytest.mark.thorough
def test_an_idle_writer_keeps_its_ensemble(five: list[BookieProcess]) -> None:
    """After a connection was lost while idle, or beyond the ack quorum, the ensemble changes with the next add only."""

    async def scenario() -> None:
        async with client(uri_of(five[0])) as c:
            chosen = [bookie.id for bookie in five[:3]]
            writer = await c.create((3, 3, 2), chosen)
            await writer.append(b"one")
            five[2].freeze()
            await writer.append(b"two")
            five[2].kill()
            lost = five[2].id
            await comes_true(lambda: lost in writer._replacer.waiting.values())
            await comes_true(lambda: c.context.bookies.pending(lost) == 0)
            assert (await c.context.metadata.read(writer.ledger)).value == writer.known.metadata
            assert (writer._replacer.running, len(writer.known.metadata.segments)) == (False, 1)

            await writer.append(b"three")
            await comes_true(lambda: lost not in writer.known.metadata.segments[-1].bookies)
            await writer.append(b"four")
            await writer.close()
            await c.check(writer, [b"one", b"two", b"three", b"four"])

    run(scenario())


@pytest.mark.thorough
def test_a_connection_that_ends_unused_is_nobodys_failure(five: list[BookieProcess]) -> None:
    """A bookie that restarts while its writer is idle is written to again."""

    async def scenario() -> None:
        async with client(uri_of(five[0])) as c:
            writer = await c.create((2, 2, 2), [five[0].id, five[1].id])
            await writer.append(b"one")
            await asyncio.to_thread(five[1].stop)
            await asyncio.to_thread(five[1].start)
            await writer.append(b"two")
            assert len(writer.known.metadata.segments) == 1
            await writer.close()
            await c.check(writer, [b"one", b"two"])

    run(scenario())


@pytest.mark.thorough
def test_an_ensemble_that_must_not_change(five: list[BookieProcess]) -> None:
    """With the feature disable_ensemble_change, a failed bookie is retried until the feature is switched off."""

    async def scenario() -> None:
        async with client(uri_of(five[0])) as c:
            writer = await c.create((2, 2, 2), [five[0].id, five[1].id])
            features = c.context.features
            features.switch("disable_ensemble_change", on=True)
            await writer.append(b"one")
            await asyncio.to_thread(five[1].kill)
            add = await writer.append_async(b"two")
            await comes_true(lambda: writer._replacer.running)
            await asyncio.to_thread(five[1].start)
            assert await add == 1
            assert len(writer.known.metadata.segments) == 1
            await asyncio.to_thread(five[1].kill)
            add = await writer.append_async(b"three")
            await comes_true(lambda: writer._replacer.running)
            features.switch("disable_ensemble_change", on=False)
            assert await add == 2
            assert five[1].id not in writer.known.metadata.segments[-1].bookies
            await asyncio.to_thread(five[1].start)
            await writer.close()
            await c.check(writer, [b"one", b"two", b"three"])

    run(scenario())


@pytest.mark.thorough
def test_an_explicit_lac_that_too_few_bookies_took(five: list[BookieProcess]) -> None:
    """The next attempt writes it again, although the writer has added nothing since."""

    async def scenario() -> None:
        async with client(uri_of(five[0]), use_v2_wire_protocol=False) as c:
            chosen = five[1:4]
            writer = await c.create((3, 3, 2), [bookie.id for bookie in chosen])
            await writer.append(b"one")
            for bookie in chosen[:2]:
                await asyncio.to_thread(bookie.kill)
            await writer._explicit_lac.tell(writer.known.metadata)
            for bookie in chosen[:2]:
                await asyncio.to_thread(bookie.start)
            await writer._explicit_lac.tell(writer.known.metadata)
            for bookie in chosen:
                packet = (await c.context.bookies.read_lac(bookie.id, writer.ledger)).packet
                assert packet is not None
                assert writer.digest.open_lac(packet, writer.ledger) == 0
            await writer.close()

    run(scenario())
