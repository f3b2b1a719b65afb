"""The end of a ledger is announced to the bookies that advertise support for it, without waiting for them."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

import pytest

from bookie.client.bookies import BookieClient
from bookie.client.config import ClientConfig
from bookie.errors import ClientClosed
from bookie.metadata.bookies.service_info import BookieServiceInfo, bookie_endpoint
from bookie.metadata.records.ledger_metadata import LedgerState
from bookie.pb import wire_pb2 as pb
from tests.client import v3_peer as v3
from tests.client.v3_peer import V3Peer
from tests.client.writing.cluster import DIGEST, client, run, uri_of
from tests.fixtures.bookies import BookieProcess

T = TypeVar("T")


async def there(call: Callable[[], T]) -> T:
    """Run the scripted bookie's step while the event loop runs."""
    return await asyncio.to_thread(call)


@pytest.mark.thorough
def test_write_close_is_told_and_not_waited_for(five: list[BookieProcess]) -> None:
    """The bookie that advertises write closes gets one, and never answers; the other one gets only the adds."""

    async def scenario(listening: V3Peer, other: V3Peer) -> None:
        async def registered(bookie: str) -> bytes:
            peer, extensions = (listening, "writeClose") if bookie == "listening" else (other, "batchRead")
            return BookieServiceInfo((bookie_endpoint("127.0.0.1", peer.port),), {"pybk.v3.ext": extensions}).to_bytes()

        settings = ClientConfig(use_v2_wire_protocol=False, add_timeout_s=60, read_timeout_s=0)
        async with client(uri_of(five[0])) as c, BookieClient(settings, registered) as bookies:
            c.context = replace(c.context, bookies=bookies)
            writer = await c.create((2, 2, 2), ["listening", "other"])
            add = asyncio.ensure_future(writer.append(b"x"))
            for peer in (listening, other):
                peer.respond(v3.ok(await there(peer.ask)))
            assert await add == 0
            assert (await writer.close()).state is LedgerState.CLOSED
            request = await there(listening.ask)
            assert request.header.operation == pb.WRITE_CLOSE
            assert request.writeCloseRequest.ledgerId == writer.ledger
            assert request.writeCloseRequest.masterKey == DIGEST.master_key
            assert bookies.pending("listening") == 1
        assert await there(lambda: other.sock.recv(1)) == b""

    with V3Peer() as listening, V3Peer() as other:
        run(scenario(listening, other))


def test_a_close_that_is_cancelled_leaves_no_connection() -> None:
    """Whoever does not wait for the announcements of a client that is closed has closed it all the same."""

    async def scenario(listening: V3Peer) -> None:
        async def registered(_: str) -> bytes:
            endpoint = bookie_endpoint("127.0.0.1", listening.port)
            return BookieServiceInfo((endpoint,), {"pybk.v3.ext": "writeClose"}).to_bytes()

        bookies = BookieClient(ClientConfig(use_v2_wire_protocol=False, read_timeout_s=0), registered)
        bookies.announce_end(7, DIGEST.master_key, ["listening"])
        assert (await there(listening.ask)).header.operation == pb.WRITE_CLOSE
        closing = asyncio.ensure_future(bookies.close())
        await asyncio.sleep(0)
        closing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await closing
        assert await there(lambda: listening.sock.recv(1)) == b""
        with pytest.raises(ClientClosed):
            await bookies.bookie_info("listening")

    with V3Peer() as listening:
        run(scenario(listening))
