"""Groups of single reads, against a scripted bookie: some responses, none, late ones, and one that is too long."""

from typing import Any

import numpy as np
import pytest

from bookie.client.bookies import BookieClient
from bookie.errors import BookieUnavailable, NoSuchEntry, ReadError, RequestTimeout
from bookie.pb import wire_pb2 as pb
from tests.client import v3_peer as v3
from tests.client.bookies.playing import play, started, there
from tests.client.bookies.senders import sealed
from tests.client.v3_peer import V3Peer
from tests.client.wire_peer import WirePeer
from tests.reference import wire_v2 as v2


def ids(*entries: int) -> Any:
    """Return entry ids as an array."""
    return np.array(entries, dtype=np.int64)


async def requests(peer: WirePeer, count: int) -> list[v2.Request]:
    """Return the requests that the bookie received."""
    return [await there(peer.request) for _ in range(count)]


def read(entry: int, *, code: int = 0) -> v2.Response:
    """Return a V2 response to a read."""
    return v2.Response(v2.READ, code, 7, entry, body=b"" if code else sealed(7, entry, b"x"))


def test_some_answers_then_the_end(peer: WirePeer) -> None:
    """BR10: responses and errors that arrived count. The others fail with the connection."""

    async def work(client: BookieClient, bookie: str) -> None:
        some = started(client.read_many(bookie, 7, ids(1, 2, 5)))
        none = started(client.read_many(bookie, 8, ids(1, 2)))
        assert [request.entry for request in await requests(peer, 5)] == [1, 2, 5, 1, 2]
        assert client.pending(bookie) == 5
        last = started(client.read(bookie, 7, 6))
        await requests(peer, 1)
        await there(peer.answer, read(5), read(2, code=2), read(5, code=2), read(6))
        await last
        await there(peer.forget)
        answers = await some
        assert answers.stored(5) == sealed(7, 5, b"x")
        with pytest.raises(NoSuchEntry, match="read of ledger 7, entry 2: answered with code 2"):
            answers.stored(2)
        with pytest.raises(BookieUnavailable, match="reads of ledger 7, entries 1 to 5: connection lost"):
            answers.stored(1)
        with pytest.raises(BookieUnavailable, match="reads of ledger 8, entries 1 to 2: connection lost"):
            await none
        assert client.pending(bookie) == 0

    play(peer, work, read_timeout_s=60)


def test_late_answers_keep_their_names(peer: WirePeer) -> None:
    """BR11: in V2 reads wait for earlier reads of the same entries that timed out or were cancelled."""

    async def work(client: BookieClient, bookie: str) -> None:
        with pytest.raises(RequestTimeout, match=r"entries 1 to 2: .*no answer in time"):
            await client.read_many(bookie, 7, ids(1, 2))
        await requests(peer, 2)
        with pytest.raises(RequestTimeout, match="not sent, since an earlier request for the same entry"):
            await client.read_many(bookie, 7, ids(2, 3))
        with pytest.raises(RequestTimeout, match="not sent, since an earlier request for the same entry"):
            await client.read(bookie, 7, 1)
        await there(peer.answer, read(1), read(2))
        one = started(client.read(bookie, 7, 1))
        await requests(peer, 1)
        many = started(client.read_many(bookie, 7, ids(1, 2)))
        await there(peer.answer, read(1))
        assert (await one).stored == sealed(7, 1, b"x")
        await requests(peer, 2)
        await there(peer.answer, read(2), read(1))
        answers = await many
        assert [answers.stored(entry) for entry in (1, 2)] == [sealed(7, entry, b"x") for entry in (1, 2)]

    play(peer, work, read_timeout_s=0.5)


def test_an_answer_above_the_frame(peer: WirePeer) -> None:
    """BR13: a response above the frame limit fails its entry, not the connection."""

    async def work(client: BookieClient, bookie: str) -> None:
        many = started(client.read_many(bookie, 7, ids(1, 2, 3)))
        await requests(peer, 3)
        long = v2.Response(v2.READ, 0, 7, 2, body=bytes(300_000))
        await there(peer.answer, read(1), long, read(3))
        answers = await many
        assert [answers.stored(entry) for entry in (1, 3)] == [sealed(7, entry, b"x") for entry in (1, 3)]
        with pytest.raises(ReadError, match="entry 2: the response has more bytes than frame_bytes_max=65536"):
            answers.stored(2)

    play(peer, work, frame_bytes_max=65_536)


def test_v3(v3_peer: V3Peer) -> None:
    """V3 responses are matched by transaction and carry the LAC; a response without the entry counts as missing."""

    async def work(client: BookieClient, bookie: str) -> None:
        twice = [started(client.read_many(bookie, 7, ids(1, 2))) for _ in range(2)]
        asked = [await there(v3_peer.ask) for _ in range(4)]
        bodies = [v3.entry_read(request, bytes([k]) * 30) for k, request in enumerate(asked[:3])]
        await there(v3_peer.respond, *bodies[::-1], v3.refused(asked[3], pb.ENOENTRY), *bodies, piece=7)
        one, two = [await each for each in twice]
        assert [one.stored(1), one.stored(2), two.stored(1)] == [bytes([k]) * 30 for k in range(3)]
        with pytest.raises(NoSuchEntry, match="ledger 7, entry 2"):
            two.stored(2)

    play(v3_peer, work)
