"""What the channel and the links share: the requests of both protocols, and the meaning of responses.

The channel and the links themselves are tested in test_channel and bookies/test_link.
"""

from concurrent.futures import ThreadPoolExecutor
from itertools import chain

import pytest

from bookie.client import Channel
from bookie.client.wire.flags import LAST_ENTRY
from bookie.client.wire.request import Request, Wire
from bookie.client.wire.v2 import WireV2
from bookie.client.wire.v3 import WireV3
from bookie.errors import IllegalOperation, IncorrectParameter, NoSuchEntry, ProtocolVersionMismatch, ReadError
from bookie.pb import wire_pb2 as pb
from tests.client.wire_peer import DIGEST, WirePeer

BOOKIE = "b1:3181"
WIRES = (WireV2, WireV3)


def read(wire: Wire, entry: int = 3) -> Request:
    """Return a read of ledger 7."""
    return wire.read(7, entry, 0, None, 10.0)


@pytest.mark.parametrize("protocol", WIRES)
def test_a_code_means_the_same_to_both_clients(protocol: type[WireV2 | WireV3]) -> None:
    """A code means success, refusal, or the end of the connection if it is unknown; errors name bookie and request."""
    wire = protocol(1000)
    granted, no_entry, unknown = (0, 2, 55) if protocol is WireV2 else (pb.EOK, pb.ENOENTRY, 600)
    assert read(wire).refusal(wire, BOOKIE, granted) is None
    refusal = read(wire).refusal(wire, BOOKIE, no_entry)
    assert type(refusal) is NoSuchEntry
    assert str(refusal).startswith(f"{BOOKIE}: read of ledger 7, entry 3: answered with code {no_entry}: ")
    with pytest.raises(ProtocolVersionMismatch, match=str(unknown)):
        read(wire).refusal(wire, BOOKIE, unknown)


def test_an_extension_that_the_bookie_does_not_know() -> None:
    """The code for bad requests means to a batch read that the bookie does not support it."""
    wire = WireV3(1000)
    batch = wire.batch_read(7, 0, 10, 1000, 0, None, 10.0)
    assert type(batch.refusal(wire, BOOKIE, pb.EBADREQ)) is IllegalOperation
    assert type(read(wire).refusal(wire, BOOKIE, pb.EBADREQ)) is not IllegalOperation


@pytest.mark.parametrize("protocol", WIRES)
def test_a_malformed_answer(protocol: type[WireV2 | WireV3]) -> None:
    """An invalid body is a ReadError of this request alone."""
    with pytest.raises(ReadError, match=f"^{BOOKIE}: read of ledger 7, last entry: malformed answer: "):
        read(protocol(1000), LAST_ENTRY).value(BOOKIE, memoryview(b"?"))


@pytest.mark.parametrize("protocol", WIRES)
def test_a_frame_over_the_limit(protocol: type[WireV2 | WireV3]) -> None:
    """A frame above the limit is refused before it is sent."""
    request = protocol(1000).add(7, 0, bytes(500), b"k" * 20, 0, 10.0)
    request.fits(len(request.frame))
    with pytest.raises(IncorrectParameter, match=f"has {len(request.frame)} bytes; the limit is 500"):
        request.fits(500)


def test_each_transaction_is_used_once() -> None:
    """Threads that share a V3 connection reserve transactions, one or many at a time, and never the same."""
    wire = WireV3(1000)
    counts = [1, 5, 2] * 500
    with ThreadPoolExecutor(8) as threads:
        firsts = list(threads.map(wire.transactions, counts))
    taken = sorted(chain.from_iterable(range(first, first + n) for first, n in zip(firsts, counts, strict=True)))
    assert taken == list(range(1, sum(counts) + 1))


def test_a_reply_does_not_keep_what_was_sent(peer: WirePeer, channel: Channel) -> None:
    """Replies do not keep the sent frames, which are as large as the entries."""
    reply = channel.add_async(7, 0, bytes(10_000), digest=DIGEST, lac=-1, length=10_000)
    sent = peer.request().body
    assert sent is not None
    assert len(sent) > 10_000
    assert not reply.request.frame
