"""One connection to a scripted bookie: responses that are late, doubled, torn, too long, or missing."""

import asyncio
import gc
from dataclasses import replace
from typing import TypeVar

import numpy as np
import pytest

from bookie.client.bookies import BookieClient
from bookie.client.bookies.link import Link
from bookie.client.bookies.sender import Sender
from bookie.errors import (
    BookieUnavailable,
    LedgerFenced,
    NoSuchEntry,
    ProtocolVersionMismatch,
    ReadError,
    RequestTimeout,
    TooManyRequests,
    WriteError,
)
from bookie.pb import wire_pb2 as pb
from tests.client import v3_peer as v3
from tests.client.bookies.playing import play, started, there
from tests.client.bookies.senders import DIGEST, Owner, records, sealed
from tests.client.v3_peer import V3Peer
from tests.client.wire_peer import WirePeer, batch_answer
from tests.golden.wire_v2 import E0
from tests.reference import wire_v2 as v2

T = TypeVar("T")
KEY = DIGEST.master_key
MIB = 1 << 20


def entry_of(add: v2.Request) -> int:
    """Return the entry id in an add."""
    return int.from_bytes((add.body or b"")[8:16], "big")


def test_answers_in_any_order_and_twice(peer: WirePeer) -> None:
    """BR11: batches are matched by request id, adds by entry; responses that belong to no request are dropped."""

    async def work(client: BookieClient, bookie: str) -> None:
        one = started(client.batch_read(bookie, 7, 0, 10, 1000))
        two = started(client.batch_read(bookie, 7, 10, 10, 1000))
        first, second = (await there(peer.request), await there(peer.request))
        answers = [batch_answer(request.request_id, request.entry, [b"x"] * 3) for request in (second, first)]
        stray = [batch_answer(99, 0, [b"y"]), v2.Response(v2.ADD, 0, 7, 5), v2.Response(v2.READ, 0, 7, 5, body=E0)]
        await there(peer.answer, *stray, *answers, *answers, *stray)
        assert ((await one).first, (await two).first) == (0, 10)
        owner = Owner()
        client.adds(bookie, 7, KEY, owner).send(*records(7, [5, 6]))
        for _ in range(2):
            await there(peer.request)
        await there(peer.answer, *[v2.Response(v2.ADD, 0, 7, 5)] * 3, v2.Response(v2.ADD, 101, 7, 6))
        await owner.until(2)
        assert owner.codes == {5: [0], 6: [WriteError.code]}

    play(peer, work)


def test_v3_answers_in_any_order_and_twice(v3_peer: V3Peer) -> None:
    """BR11: a transaction is answered once; further responses to it are dropped."""

    async def work(client: BookieClient, bookie: str) -> None:
        reads = [started(client.read(bookie, 7, entry)) for entry in (1, 1, 2)]
        asked = [await there(v3_peer.ask) for _ in reads]
        answers = [v3.entry_read(request, bytes([k]) * 30) for k, request in enumerate(asked)]
        await there(v3_peer.respond, *answers[::-1], *answers, piece=7)
        assert [(await read).stored for read in reads] == [bytes([k]) * 30 for k in range(3)]
        owner = Owner()
        client.adds(bookie, 7, KEY, owner).send(*records(7, [5, 6]))
        asked = [await there(v3_peer.ask) for _ in range(2)]
        await there(v3_peer.respond, v3.ok(asked[1]), v3.ok(asked[1]), v3.refused(asked[0], pb.EFENCED))
        await owner.until(2)
        assert owner.codes == {5: [LedgerFenced.code], 6: [0]}

    play(v3_peer, work)


def test_a_late_answer_keeps_its_name(peer: WirePeer) -> None:
    """BR11: in V2 a second request with the same key is sent after the first is answered, however late."""

    async def work(client: BookieClient, bookie: str) -> None:
        with pytest.raises(RequestTimeout, match="read of ledger 7, entry 0"):
            await client.read(bookie, 7, 0)
        client.config = replace(client.config, read_timeout_s=60)  # later requests are answered
        await there(peer.request)
        again = started(client.read(bookie, 7, 0))
        other = started(client.read(bookie, 7, 1))
        assert (await there(peer.request)).entry == 1
        await there(peer.answer, v2.Response(v2.READ, 2, 7, 0), v2.Response(v2.READ, 0, 7, 1, body=E0))
        assert (await other).stored == E0
        assert (await there(peer.request)).entry == 0
        await there(peer.answer, v2.Response(v2.READ, 0, 7, 0, body=E0))
        assert (await again).stored == E0

    play(peer, work, read_timeout_s=0.2)


def test_a_name_that_is_never_answered(peer: WirePeer) -> None:
    """A second request with the same key times out without being sent, and so does a sender that would need the key."""

    async def work(client: BookieClient, bookie: str) -> None:
        adds = [started(client.add(bookie, 7, 5, sealed(7, 5, b"x"), KEY)) for _ in range(2)]
        await there(peer.request)
        owner = Owner()
        sender = client.adds(bookie, 7, KEY, owner)
        sender.send(*records(7, [4, 5]))
        results = await asyncio.gather(*adds, return_exceptions=True)
        assert [type(result) for result in results] == [RequestTimeout, RequestTimeout]
        await owner.until(1)
        assert [type(error) for error in owner.errors] == [RequestTimeout]
        sender.send(*records(7, [6]))
        await there(peer.answer, v2.Response(v2.ADD, 0, 7, 5))
        await client.close()
        assert len(owner.errors) == 1

    play(peer, work, add_timeout_s=0.5)


def test_senders_one_after_the_other(peer: WirePeer) -> None:
    """A second sender's add waits for the response to the same entry of the first sender, which was closed."""

    async def work(client: BookieClient, bookie: str) -> None:
        first, second = Owner(), Owner()
        sender = client.adds(bookie, 7, KEY, first)
        sender.send(*records(7, [5]))
        sender.close()
        again = client.adds(bookie, 7, KEY, second)
        again.send(*records(7, [5, 6]))
        again.send(*records(7, [7]))
        assert entry_of(await there(peer.request)) == 5
        await there(peer.answer, v2.Response(v2.ADD, 101, 7, 5))
        for entry in (5, 6, 7):
            assert entry_of(await there(peer.request)) == entry
        await there(peer.answer, *(v2.Response(v2.ADD, 0, 7, entry) for entry in (7, 6, 5)))
        await second.until(3)
        assert second.codes == {5: [0], 6: [0], 7: [0]}
        assert (first.codes, first.errors) == ({}, [])

    play(peer, work)


@pytest.mark.parametrize("kind", [WirePeer, V3Peer])
def test_the_bookie_hangs_up_in_mid_answer(kind: type[WirePeer]) -> None:
    """BR10: after 300 connections ended within a batch response, each request failed once and no resource is leaked."""
    times = 300

    def serve(peer: WirePeer, *, whole: bool) -> None:
        if isinstance(peer, V3Peer):
            message = v3.batch_read(peer.ask(), [bytes(100_000)]).SerializeToString()
            answer = len(message).to_bytes(4, "big") + message
        else:
            answer = v2.encode_response(batch_answer(peer.request().request_id, 0, [bytes(100_000)]))
        peer.send(answer if whole else answer[: len(answer) // 2])
        peer.forget()

    async def work(client: BookieClient, bookie: str) -> None:
        batch = started(client.batch_read(bookie, 7, 0, 10, MIB))
        await there(serve, peer, whole=True)
        await batch
        for k in range(times):
            batch = started(client.batch_read(bookie, 7, k, 10, MIB))
            await there(serve, peer, whole=False)
            with pytest.raises(BookieUnavailable, match=f"batch read of ledger 7 from entry {k}: connection lost"):
                await batch
        assert client.pending(bookie) == 0
        gc.collect()
        assert sum(isinstance(thing, Link) for thing in gc.get_objects()) <= 2

    with kind() as peer:
        play(peer, work, extensions="batchRead", read_timeout_s=60)


def test_an_entry_above_our_frames(peer: WirePeer) -> None:
    """BR13: the reader of an entry above the frame limit gets the limit, the connection stays, and adds continue."""

    async def work(client: BookieClient, bookie: str) -> None:
        long, short = started(client.read(bookie, 7, 0)), started(client.read(bookie, 7, 1))
        for _ in range(2):
            await there(peer.request)
        whole = v2.encode_response(v2.Response(v2.READ, 0, 7, 0, body=bytes(6 * MIB)))
        await there(peer.send, whole + v2.encode_response(v2.Response(v2.READ, 0, 7, 1, body=E0)))
        with pytest.raises(ReadError, match=f"entry 0: the response has {len(whole)} bytes, more than .*; raise"):
            await long
        assert (await short).stored == E0
        again = started(client.read(bookie, 7, 2))
        assert (await there(peer.request)).entry == 2
        await there(peer.send, (6 * MIB).to_bytes(4, "big") + bytes(100))
        with pytest.raises(BookieUnavailable, match="connection given up: a response of 6291460 bytes"):
            await again

    play(peer, work, read_timeout_s=60)


def test_an_entry_above_our_frames_in_v3(v3_peer: V3Peer) -> None:
    """BR13: the same holds in V3."""

    async def work(client: BookieClient, bookie: str) -> None:
        long, short = started(client.read(bookie, 7, 0)), started(client.read(bookie, 7, 1))
        asked = [await there(v3_peer.ask) for _ in range(2)]
        answers = [v3.entry_read(asked[0], bytes(3 * MIB)), v3.entry_read(asked[1], E0)]
        await there(v3_peer.respond, *answers, piece=100_000)
        with pytest.raises(ReadError, match=r"entry 0: the response has 31[0-9]* bytes, more than .*=100000; raise"):
            await long
        assert (await short).stored == E0

    play(v3_peer, work, frame_bytes_max=100_000, read_timeout_s=60)


def test_nonsense(peer: WirePeer) -> None:
    """A peer of another protocol, or an unknown code, ends the connection with an error that says why."""

    async def work(client: BookieClient, bookie: str) -> None:
        read = started(client.read(bookie, 7, 0))
        await there(peer.request)
        await there(peer.send, b"HTTP/1.1 400 Bad Request\r\n")
        with pytest.raises(BookieUnavailable, match="connection given up: response 0"):
            await read
        peer.forget()
        reads = [started(client.read(bookie, 7, entry)) for entry in range(2)]
        owner = Owner()
        client.adds(bookie, 7, KEY, owner).send(*records(7, [5]))
        for _ in range(3):
            await there(peer.request)
        await there(peer.answer, v2.Response(v2.READ, 999, 7, 0))
        for result in await asyncio.gather(*reads, return_exceptions=True):
            assert isinstance(result, ProtocolVersionMismatch)
        await owner.until(1)
        assert [type(error) for error in owner.errors] == [ProtocolVersionMismatch]

    play(peer, work)


def test_malformed_batches(peer: WirePeer) -> None:
    """BR7: a batch without entries, or with half of one, is a read error, and the connection stays."""

    async def work(client: BookieClient, bookie: str) -> None:
        for body in (b"", b"\0\0\0\x09half"):
            batch = started(client.batch_read(bookie, 7, 0, 10, 1000))
            number = (await there(peer.request)).request_id
            await there(peer.answer, v2.Response(v2.BATCH_READ, 0, 7, 0, number, body))
            with pytest.raises(ReadError, match="malformed answer"):
                await batch
        read = started(client.read(bookie, 7, 9))
        await there(peer.request)
        await there(peer.answer, v2.Response(v2.READ, 2, 7, 9))
        with pytest.raises(NoSuchEntry):
            await read

    play(peer, work)


async def until_full(sender: Sender) -> int:
    """Send entries of ledger 7 until the sender is full, and return how many it accepted."""
    sent = 0
    while not sender.full:
        sender.send(*records(7, range(sent, sent + 10), size=50_000))
        sent += 10
        await asyncio.sleep(0)
    return sent


def test_a_sender_that_is_full(peer: WirePeer) -> None:
    """If a bookie reads nothing, its sender becomes full, and tells when it no longer is."""

    async def work(client: BookieClient, bookie: str) -> None:
        owner = Owner()
        sender = client.adds(bookie, 7, KEY, owner)
        sent = await until_full(sender)
        assert owner.rooms == 0
        for _ in range(sent):
            await there(peer.request)
        while not owner.rooms:
            owner.changed.clear()
            await asyncio.wait_for(owner.changed.wait(), 60)
        assert (owner.rooms, sender.full) == (1, False)
        await there(peer.answer, *(v2.Response(v2.ADD, 0, 7, entry) for entry in range(sent)))
        await owner.until(sent)
        assert not owner.errors

    play(peer, work, add_timeout_s=120)


def test_a_batch_read_that_would_rather_fail_than_wait(v3_peer: V3Peer) -> None:
    """With `allow_fast_fail` a batch read is refused at once while much output is queued; others wait."""

    async def work(client: BookieClient, bookie: str) -> None:
        owner = Owner()
        sender = client.adds(bookie, 7, KEY, owner)
        sent = await until_full(sender)
        with pytest.raises(TooManyRequests, match=f"{bookie}: batch read of ledger 7: .* try again later"):
            await client.batch_read_entries(bookie, 7, 0, 10, 1000, allow_fast_fail=True)
        waits = started(client.batch_read_entries(bookie, 7, 1, 10, 1000))
        for _ in range(sent):
            assert (await there(v3_peer.ask)).header.operation == pb.ADD_ENTRY
        asked = await there(v3_peer.ask)
        assert asked.batchReadRequest.startEntryId == 1
        quick = started(client.batch_read_entries(bookie, 7, 2, 10, 1000, allow_fast_fail=True))
        asked_too = await there(v3_peer.ask)
        assert asked_too.batchReadRequest.startEntryId == 2
        for request in (asked, asked_too):
            await there(
                v3_peer.respond, v3.batch_read(request, [sealed(7, request.batchReadRequest.startEntryId, b"x")])
            )
        assert [(await batch).first for batch in (waits, quick)] == [1, 2]

    play(v3_peer, work, extensions="batchRead", add_timeout_s=120, read_timeout_s=120)


def test_a_caller_that_gives_up(peer: WirePeer) -> None:
    """The response to a cancelled read is dropped, and its key is free afterwards."""

    async def work(client: BookieClient, bookie: str) -> None:
        read = started(client.read(bookie, 7, 0))
        await there(peer.request)
        read.cancel()
        with pytest.raises(asyncio.CancelledError):
            await read
        again = started(client.read(bookie, 7, 0))
        await there(peer.answer, v2.Response(v2.READ, 2, 7, 0))
        await there(peer.request)
        await there(peer.answer, v2.Response(v2.READ, 0, 7, 0, body=E0))
        assert (await again).stored == E0

    play(peer, work)


def test_waits_of_a_hung_v2_bookie_are_released(peer: WirePeer) -> None:
    """Reads that wait behind an unanswered one of the same entry leave nothing behind when their time is over."""

    async def work(client: BookieClient, bookie: str) -> None:
        link = client._peer(bookie).link(7)
        for _ in range(5):
            with pytest.raises(RequestTimeout):
                await client.read(bookie, 7, 1)
        with pytest.raises(RequestTimeout):
            await client.read_many(bookie, 7, np.array([1, 2], dtype=np.int64))
        assert not link._key_waits
        assert link.pending == 1

    play(peer, work, read_timeout_s=0.05)
