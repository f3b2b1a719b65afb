"""When a connection ends, each request and each sender on it ends exactly once, whatever the cause."""

import asyncio
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from bookie.client.bookies import BookieClient
from bookie.client.bookies.connect import Connector
from bookie.client.bookies.link import Link
from bookie.errors import BookieUnavailable, BookKeeperError, ProtocolVersionMismatch, RequestTimeout
from tests.client.bookies.playing import play, started, there
from tests.client.bookies.senders import DIGEST, Owner, records, sealed
from tests.client.wire_peer import WirePeer
from tests.reference import wire_v2 as v2

KEY = DIGEST.master_key
NONSENSE = 999
"""A code that is not in the protocol."""


class BadOwner(Owner):
    """An owner that raises when it is called."""

    def lost(self, error: BookKeeperError) -> None:
        """Raise an error."""
        super().lost(error)
        raise ValueError("not foreseen")


def ids(*entries: int) -> Any:
    """Return entry ids as an array."""
    return np.array(entries, dtype=np.int64)


async def both_reads(client: BookieClient, bookie: str, peer: WirePeer) -> tuple[Any, Any, Owner]:
    """Start two calls for two reads each, both with one invalid response, and an add."""
    one, two = started(client.read_many(bookie, 7, ids(1, 2))), started(client.read_many(bookie, 7, ids(3, 4)))
    owner = Owner()
    client.adds(bookie, 7, KEY, owner).send(*records(7, [5]))
    for _ in range(5):
        await there(peer.request)
    last = started(client.read(bookie, 7, 6))
    await there(peer.request)
    nonsense = [v2.Response(v2.READ, NONSENSE, 7, entry) for entry in (1, 3)]
    await there(peer.answer, *nonsense, v2.Response(v2.READ, 0, 7, 6, body=sealed(7, 6, b"x")))
    await last
    return one, two, owner


def test_reads_that_fail_to_end(peer: WirePeer) -> None:
    """If the connection is lost after responses with an unknown code, reads and adds end all the same."""

    async def work(client: BookieClient, bookie: str) -> None:
        one, two, owner = await both_reads(client, bookie, peer)
        await there(peer.forget)
        for read in (one, two):
            with pytest.raises(ProtocolVersionMismatch, match="reads of ledger 7"):
                await asyncio.wait_for(read, 60)
        await owner.until(1)
        assert [type(error) for error in owner.errors] == [BookieUnavailable]
        assert client.pending(bookie) == 0

    play(peer, work, read_timeout_s=60, add_timeout_s=60)


def test_reads_that_fail_to_time_out(peer: WirePeer) -> None:
    """If such reads time out, the connection ends as invalid, and everything on it ends."""

    async def work(client: BookieClient, bookie: str) -> None:
        one, two, owner = await both_reads(client, bookie, peer)
        for read in (one, two):
            with pytest.raises(ProtocolVersionMismatch, match="reads of ledger 7"):
                await asyncio.wait_for(read, 60)
        await owner.until(1)
        assert [type(error) for error in owner.errors] == [ProtocolVersionMismatch]

    play(peer, work, read_timeout_s=3, add_timeout_s=120)


def test_a_sender_whose_owner_fails(peer: WirePeer) -> None:
    """An owner that raises does not keep the other senders from being told of the end."""

    async def work(client: BookieClient, bookie: str) -> None:
        owners = [BadOwner(), Owner(), BadOwner(), Owner()]
        for number, owner in enumerate(owners):
            client.adds(bookie, 7, KEY, owner).send(*records(7, [number]))
            await there(peer.request)
        await there(peer.forget)
        for owner in owners:
            await owner.until(1)
        assert [[type(error) for error in owner.errors] for owner in owners] == [[BookieUnavailable]] * 4

    play(peer, work, add_timeout_s=60)


def test_a_sender_whose_owner_fails_when_its_time_is_up(peer: WirePeer) -> None:
    """An owner that raises at a timeout does not stop the other senders or later timeouts."""

    async def work(client: BookieClient, bookie: str) -> None:
        owners = [BadOwner(), Owner()]
        for number, owner in enumerate(owners):
            client.adds(bookie, 7, KEY, owner).send(*records(7, [number]))
        for owner in owners:
            await owner.until(1)
        assert [[type(error) for error in owner.errors] for owner in owners] == [[RequestTimeout]] * 2
        client.config = replace(client.config, read_timeout_s=0.1)
        with pytest.raises(RequestTimeout):
            await asyncio.wait_for(client.read(bookie, 7, 9), 60)

    play(peer, work, add_timeout_s=0.2)


def test_who_waits_for_a_name(peer: WirePeer) -> None:
    """In V2 a request that waits for one with the same key ends with the connection, even without a timeout."""

    async def work(client: BookieClient, bookie: str) -> None:
        owner = Owner()
        client.adds(bookie, 7, KEY, owner).send(*records(7, [5]))
        first = started(client.read_many(bookie, 7, ids(1, 2)))
        for _ in range(3):
            await there(peer.request)
        first.cancel()  # its keys stay in use
        add = started(client.add(bookie, 7, 5, sealed(7, 5, b"x"), KEY))
        reads: list[Any] = [started(client.read(bookie, 7, 1)), started(client.read_many(bookie, 7, ids(2, 3)))]
        other = started(client.read(bookie, 7, 9))
        await there(peer.request)
        await there(peer.forget)
        for waiting in (add, *reads, other):
            with pytest.raises(BookieUnavailable):
                await asyncio.wait_for(waiting, 30)

    play(peer, work, read_timeout_s=0, add_timeout_s=0)


def test_a_connection_that_fails_as_nobody_foresaw(peer: WirePeer, monkeypatch: pytest.MonkeyPatch) -> None:
    """An unexpected error while connecting fails the waiting requests; the next request connects again."""
    connect = Connector.connect

    async def fail_once(self: Connector, link: Link[Any], host: str, port: int) -> None:
        monkeypatch.setattr(Connector, "connect", connect)
        raise ValueError("not foreseen")

    monkeypatch.setattr(Connector, "connect", fail_once)

    async def work(client: BookieClient, bookie: str) -> None:
        with pytest.raises(BookieUnavailable, match="not foreseen"):
            await asyncio.wait_for(client.read(bookie, 7, 1), 60)
        again = started(client.read(bookie, 7, 1))
        await there(peer.request)
        await there(peer.answer, v2.Response(v2.READ, 0, 7, 1, body=sealed(7, 1, b"x")))
        assert (await again).stored == sealed(7, 1, b"x")

    play(peer, work, read_timeout_s=0)


def test_a_silent_connection_ends(peer: WirePeer) -> None:
    """When nothing arrives after requests have timed out, the connection ends, and what they took is given back."""

    async def work(client: BookieClient, bookie: str) -> None:
        owner = Owner()
        client.adds(bookie, 7, KEY, owner).send(*records(7, [5]))
        calls: list[asyncio.Future[Any]] = [
            started(client.read_many(bookie, 7, ids(1, 2))),
            *(started(client.read(bookie, 8, k)) for k in range(9)),
        ]
        for error in await asyncio.gather(*calls, return_exceptions=True):
            assert isinstance(error, RequestTimeout)
        await owner.until(1)
        assert client.pending(bookie) == 1 + 2 + 9
        client.config = replace(client.config, read_timeout_s=60)
        waiting = started(client.read(bookie, 7, 9))
        with pytest.raises(BookieUnavailable, match="silentConnectionTimeoutSec"):
            await asyncio.wait_for(waiting, 60)
        assert client.pending(bookie) == 0

    play(peer, work, read_timeout_s=0.1, add_timeout_s=0.1, silence_s=3)
