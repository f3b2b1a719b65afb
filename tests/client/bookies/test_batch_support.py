"""Whether a bookie supports batch reads, as its client finds out, and what it does where it does not (BR6)."""

import asyncio
import logging

import pytest

from bookie.client.bookies import BookieClient
from bookie.client.bookies.peer import ADVERTISED_REFUSED_S, BATCHES_REFUSED_S, LOOK_AGAIN_S
from bookie.client.config import ClientConfig
from bookie.errors import BookieUnavailable, IllegalOperation, NoSuchEntry
from bookie.metadata.bookies.service_info import BookieServiceInfo, bookie_endpoint
from bookie.pb import wire_pb2 as pb
from tests.client import v3_peer as v3
from tests.client.bookies.playing import play, started, there
from tests.client.bookies.senders import DIGEST, Owner, records
from tests.client.v3_peer import V3Peer
from tests.client.wire_peer import WirePeer, batch_answer
from tests.golden.wire_v2 import E0
from tests.reference import wire_v2 as v2

KEY = DIGEST.master_key


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return what the log says about batch reads, each up to the colon."""
    return [record.getMessage().partition(":")[0] for record in caplog.records]


async def hangs_up_on_batches(peer: WirePeer, client: BookieClient, bookie: str) -> None:
    """Close the connection at the first batch read, like a bookie that does not support them."""
    batch = started(client.batch_read(bookie, 7, 0, 10, 1000))
    await there(peer.request)
    await there(peer.hang_up)
    with pytest.raises(BookieUnavailable):
        await batch
    assert not client.batches(bookie)


def test_an_old_bookie_and_batches(peer: WirePeer) -> None:
    """BR6: after a bookie closed the connection at a batch read, none is tried for a while, at this bookie only."""

    async def work(client: BookieClient, bookie: str) -> None:
        assert client.batches(bookie)
        await hangs_up_on_batches(peer, client, bookie)
        with pytest.raises(IllegalOperation, match="read entry by entry"):
            await client.batch_read(bookie, 7, 0, 10, 1000)
        assert client.batches("127.0.0.2:9999")

    play(peer, work)


def test_a_bookie_that_says_it_knows_no_batches(peer: WirePeer) -> None:
    """BR6: EBADREQ is the other way of an old bookie to refuse a batch read. The connection stays, and entries are
    read one by one from then on.
    """

    async def work(client: BookieClient, bookie: str) -> None:
        batch = started(client.batch_read(bookie, 7, 0, 10, 1000))
        number = (await there(peer.request)).request_id
        await there(peer.answer, v2.Response(v2.BATCH_READ, 100, 7, 0, number))
        with pytest.raises(IllegalOperation, match="code 100"):
            await batch
        assert not client.batches(bookie)
        single = started(client.read(bookie, 7, 0))
        await there(peer.request)
        await there(peer.answer, v2.Response(v2.READ, 0, 7, 0, body=E0))
        assert (await single).stored == E0

    play(peer, work)


def test_a_lost_connection_is_no_refusal_of_what_is_advertised(peer: WirePeer, monkeypatch: pytest.MonkeyPatch) -> None:
    """BR6: if the registration advertises batch reads, they are tried again a second after a connection was lost."""

    async def work(client: BookieClient, bookie: str) -> None:
        loop = asyncio.get_running_loop()
        now = loop.time
        await hangs_up_on_batches(peer, client, bookie)
        monkeypatch.setattr(loop, "time", lambda: now() + ADVERTISED_REFUSED_S)
        assert client.batches(bookie)

    play(peer, work, extensions="batchRead")


def test_an_old_bookie_that_was_upgraded(
    peer: WirePeer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """BR6: after BATCHES_REFUSED_S a bookie that refused batch reads is sent one again. One line says that entries are
    read one by one, and one that this is over.
    """
    caplog.set_level(logging.INFO, "bookie.client.bookies.peer")

    async def work(client: BookieClient, bookie: str) -> None:
        loop = asyncio.get_running_loop()
        now = loop.time
        asked_at = now()
        batch = started(client.batch_read(bookie, 7, 0, 10, 1000))
        await there(peer.request)
        await there(peer.forget)
        with pytest.raises(BookieUnavailable):
            await batch
        monkeypatch.setattr(loop, "time", lambda: asked_at + BATCHES_REFUSED_S)
        assert not client.batches(bookie)
        monkeypatch.setattr(loop, "time", lambda: now() + BATCHES_REFUSED_S)
        assert client.batches(bookie)
        batch = started(client.batch_read(bookie, 7, 0, 10, 1000))
        await there(peer.answer, batch_answer((await there(peer.request)).request_id, 0, [b"x"]))
        assert len(await batch) == 1

    play(peer, work)
    assert lines(caplog) == ["reading single entries", "reading in batches"]


def test_an_old_bookie_and_writers(peer: WirePeer) -> None:
    """BR6: the connection of the first batch read carries no adds, so writers are not affected when it is closed."""

    async def work(client: BookieClient, bookie: str) -> None:
        owner = Owner()
        client.adds(bookie, 7, KEY, owner).send(*records(7, [0]))
        await there(peer.request)
        writers = peer.leave()
        await hangs_up_on_batches(peer, client, bookie)
        peer.go_back(writers)
        await there(peer.answer, v2.Response(v2.ADD, 0, 7, 0))
        await owner.until(1)
        assert owner.codes == {0: [0]}

    play(peer, work)


def test_writers_and_a_bookie_with_batches(peer: WirePeer) -> None:
    """After the first batch read succeeded, the writers' connection is used, and that of the first one is closed."""

    async def work(client: BookieClient, bookie: str) -> None:
        client.adds(bookie, 7, KEY, Owner()).send(*records(7, [0]))
        await there(peer.request)
        writers = peer.leave()
        batch = started(client.batch_read(bookie, 7, 0, 10, 1000))
        await there(peer.answer, batch_answer((await there(peer.request)).request_id, 0, [b"x"]))
        await batch
        batch = started(client.batch_read(bookie, 7, 1, 10, 1000))
        with peer.go_back(writers) as first:
            await there(peer.answer, batch_answer((await there(peer.request)).request_id, 1, [b"y"]))
            await batch
            assert await there(first.recv, 1) == b""
        assert client.pending(bookie) == 1

    play(peer, work)


def test_a_bookie_that_served_batches_once(peer: WirePeer) -> None:
    """BR6: a bookie that has served a batch read is sent more of them even after its connection was lost."""

    async def work(client: BookieClient, bookie: str) -> None:
        batch = started(client.batch_read(bookie, 7, 0, 10, 1000))
        await there(peer.answer, batch_answer((await there(peer.request)).request_id, 0, [b"x"]))
        await batch
        batch = started(client.batch_read(bookie, 7, 1, 10, 1000))
        await there(peer.request)
        await there(peer.hang_up)
        with pytest.raises(BookieUnavailable):
            await batch
        assert client.batches(bookie)

    play(peer, work)


def test_batches_in_v3_by_what_is_advertised(v3_peer: V3Peer, caplog: pytest.LogCaptureFixture) -> None:
    """BR6: without the extension no batch read is sent, and a refusal removes the extension."""

    caplog.set_level(logging.INFO, "bookie.client.bookies.peer")

    async def plain(client: BookieClient, bookie: str) -> None:
        assert client.unbatched == 0
        for _ in range(2):
            with pytest.raises(IllegalOperation, match="does not support batch reads"):
                await client.batch_read(bookie, 7, 0, 10, 1000)
        assert not client.batches(bookie)
        assert client.unbatched == 1

    async def refusing(client: BookieClient, bookie: str) -> None:
        batch = started(client.batch_read(bookie, 7, 0, 10, 1000))
        await there(v3_peer.respond, v3.refused(await there(v3_peer.ask), pb.EBADREQ))
        with pytest.raises(IllegalOperation, match="code 404"):
            await batch
        assert not client.batches(bookie)

    play(v3_peer, plain)
    assert lines(caplog) == ["reading single entries"]
    caplog.clear()
    play(v3_peer, refusing, extensions="writeClose, batchRead")
    assert lines(caplog) == ["reading single entries"]


def test_batches_in_v3_after_an_upgrade(v3_peer: V3Peer, caplog: pytest.LogCaptureFixture) -> None:
    """BR6: what a bookie advertises is learned again at each connection, so an upgraded one is read in batches."""
    caplog.set_level(logging.INFO, "bookie.client.bookies.peer")
    advertised = {"pybk.v3.ext": "writeClose"}
    bookie = f"127.0.0.1:{v3_peer.port}"

    async def registered(_: str) -> bytes:
        return BookieServiceInfo((bookie_endpoint("127.0.0.1", v3_peer.port),), advertised).to_bytes()

    async def main() -> None:
        async with BookieClient(ClientConfig(), registered) as client:
            with pytest.raises(IllegalOperation, match="does not support batch reads"):
                await client.batch_read(bookie, 7, 0, 10, 1000)
            single = started(client.read(bookie, 7, 0))
            await there(v3_peer.ask)
            advertised["pybk.v3.ext"] = "writeClose,batchRead"
            await there(v3_peer.forget)
            with pytest.raises(BookieUnavailable):
                await single
            single = started(client.read(bookie, 7, 0))
            await there(v3_peer.respond, v3.refused(await there(v3_peer.ask), pb.ENOENTRY))
            with pytest.raises(NoSuchEntry):
                await single
            batch = started(client.batch_read(bookie, 7, 0, 10, 1000))
            await there(v3_peer.respond, v3.batch_read(await there(v3_peer.ask), [b"x"]))
            assert len(await batch) == 1

    asyncio.run(main())
    assert lines(caplog) == ["reading single entries", "reading in batches"]


def test_batches_in_v3_of_a_bookie_that_is_back(v3_peer: V3Peer, monkeypatch: pytest.MonkeyPatch) -> None:
    """BR6: a bookie that is not registered, as after an outage of the metadata store, may support batch reads all the
    same. It is looked up again a second later, over the connection that there is.
    """
    info = BookieServiceInfo((bookie_endpoint("127.0.0.1", v3_peer.port),), {"pybk.v3.ext": "batchRead"}).to_bytes()
    bookie = f"127.0.0.1:{v3_peer.port}"
    registration: list[bytes | None] = [None]
    looked_up: list[str] = []

    async def registered(name: str) -> bytes | None:
        looked_up.append(name)
        return registration[0]

    async def main() -> None:
        loop = asyncio.get_running_loop()
        now = loop.time
        async with BookieClient(ClientConfig(), registered) as client:
            single = started(client.read(bookie, 7, 0))
            await there(v3_peer.respond, v3.refused(await there(v3_peer.ask), pb.ENOENTRY))
            with pytest.raises(NoSuchEntry):
                await single
            for _ in range(3):
                with pytest.raises(IllegalOperation, match="it is not registered now"):
                    await client.batch_read(bookie, 7, 0, 10, 1000)
            assert not client.batches(bookie)
            assert len(looked_up) == 2
            registration[0] = info
            monkeypatch.setattr(loop, "time", lambda: now() + LOOK_AGAIN_S)
            assert client.batches(bookie)
            batch = started(client.batch_read(bookie, 7, 0, 10, 1000))
            await there(v3_peer.respond, v3.batch_read(await there(v3_peer.ask), [b"x"]))
            assert len(await batch) == 1

    asyncio.run(main())
