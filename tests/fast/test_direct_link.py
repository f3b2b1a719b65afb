"""Test the direct connection against bytes that a peer has sent: good responses, and everything that must end it."""

import itertools
import os
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bookie._fast.client.direct_link import INVALID, LOST, MALFORMED, REFUSED
from bookie.pb import wire_pb2 as pb
from tests.client.v3_peer import batch_read, entry_read, ok, refused
from tests.fast.direct_peer import DIGEST, FRAME_BYTES_MAX, LONG_S, Peer, connected, peer, sealed
from tests.reference import wire_v2 as v2


def test_entries_one_by_one(peer: Peer) -> None:
    """Small entries, large ones, and the largest that a frame can hold are returned as they are stored."""
    for number, size in enumerate([0, 1, 1000, 16_000, 17_000, 300_000, FRAME_BYTES_MAX - 200], start=1):
        stored = sealed(number, os.urandom(size))
        peer.send_entry(number, stored, number)
        assert peer.read(number) == stored
        assert peer.link.usable


def test_batches(peer: Peer) -> None:
    """A batch is returned whole, up to the count that was requested, and up to its first invalid entry."""
    many = [sealed(entry, os.urandom(3000)) for entry in range(200)]
    peer.send_batch(0, many, 1)
    assert peer.batch(0, 200) == many
    peer.send_batch(0, many[:5], 2)
    assert peer.batch(0, 3) == many[:3]
    peer.send_batch(3, [many[3], many[4], many[9]], 3)
    assert peer.batch(3) == many[3:5]
    peer.send_batch(3, [many[4]], 4)
    assert peer.batch(3) is None
    assert peer.link.outcome == INVALID
    assert peer.link.usable


def test_batches_in_any_order(peer: Peer) -> None:
    """Several batch reads are outstanding; their responses arrive together and in another order."""
    many = [sealed(entry, os.urandom(10 * entry)) for entry in range(90)]
    for start in (0, 30, 60):
        assert peer.link.ask_batch(7, start, 30, FRAME_BYTES_MAX, LONG_S)
    assert not peer.link.usable
    for start, number in ((60, 3), (0, 1), (30, 2)):
        peer.send_batch(start, many[start : start + 30], number)
    starts = []
    for _ in range(3):
        got = peer.link.take_batch(DIGEST.digester, LONG_S)
        assert got is not None
        first, run, offsets, _ = got
        starts.append(first)
        assert [bytes(run[a + 4 : b]) for a, b in itertools.pairwise(offsets)] == many[first : first + 30]
    assert starts == [60, 0, 30]
    assert peer.link.usable


def test_a_copied_v3_batch() -> None:
    """A V3 response whose entries do not lie in the form of a run is copied into it."""
    with connected(v3=True) as peer:
        entries = [sealed(entry) for entry in range(3)]
        asked = peer.batch_of(0)
        response = batch_read(asked, entries)
        response.batchReadResponse.maxLAC = 17
        peer.send(v2.framed(response.SerializeToString()))
        got = peer.link.batch_read(7, 0, 3, FRAME_BYTES_MAX, DIGEST.digester, LONG_S)
        assert got is not None
        assert got[3] == 17
        assert len(got[2]) == 4


def test_refusals_leave_the_connection_in_use(peer: Peer) -> None:
    """An error code, a missing entry and a wrong digest fail one request only."""
    if peer.v3:
        asked = peer.read_of(1)
        peer.respond(asked, refused(asked, pb.ENOENTRY))
    else:
        peer.send(v2.encode_response(v2.Response(v2.READ, 2, 7, 1)))
    assert peer.read(1) is None
    assert (peer.link.outcome, peer.link.usable) == (REFUSED, True)
    damaged = bytearray(sealed(1))
    damaged[-1] ^= 1
    peer.send_entry(1, bytes(damaged), 2)
    assert peer.read(1) is None
    assert (peer.link.outcome, peer.link.usable) == (INVALID, True)
    peer.send_entry(1, sealed(2), 3)
    assert peer.read(1) is None
    assert (peer.link.outcome, peer.link.usable) == (INVALID, True)
    peer.send_entry(1, sealed(1), 4)
    assert peer.read(1) == sealed(1)


HOSTILE: dict[str, Callable[[Peer], None]] = {
    "another entry": lambda peer: peer.send(v2.encode_response(v2.Response(v2.READ, 0, 7, 2, body=sealed(2)))),
    "another ledger": lambda peer: peer.send(v2.encode_response(v2.Response(v2.READ, 0, 8, 1, body=sealed(1)))),
    "another operation": lambda peer: peer.send(v2.encode_response(v2.Response(v2.ADD, 0, 7, 1))),
    "a batch": lambda peer: peer.send_batch(1, [sealed(1)], 1),
    "an unknown operation": lambda peer: peer.send(v2.framed(v2.header(2, 99) + bytes(40))),
    "no bytes": lambda peer: peer.send(bytes(4)),
    "a negative length": lambda peer: peer.send(b"\xff\xff\xff\xff" + bytes(100)),
    "one byte too many": lambda peer: peer.send((FRAME_BYTES_MAX - 3).to_bytes(4, "big")),
    "too short": lambda peer: peer.send(v2.framed(v2.header(2, v2.READ) + bytes(3))),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_responses(name: str) -> None:
    """A response that answers no outstanding request, and a frame that cannot be one, end the connection."""
    with connected() as peer:
        HOSTILE[name](peer)
        assert peer.read(1) is None
        assert (peer.link.outcome, peer.link.usable) == (MALFORMED, False)
        assert peer.read(1) is None
        assert peer.link.outcome == LOST


def test_hostile_v3_responses() -> None:
    """In V3 the transaction and the operation decide."""
    for number, operation in ((2, pb.READ_ENTRY), (1, pb.ADD_ENTRY), (1, pb.BATCH_READ_ENTRY)):
        with connected(v3=True) as peer:
            asked = peer.read_of(1, number)
            response = entry_read(asked, sealed(1), 1)
            response.header.operation = operation
            peer.respond(asked, response)
            assert peer.read(1) is None
            assert (peer.link.outcome, peer.link.usable) == (MALFORMED, False)


def test_a_response_without_an_entry() -> None:
    """A V3 response that reports success and has no entry fails the request only."""
    with connected(v3=True) as peer:
        peer.respond(peer.read_of(1), ok(peer.read_of(1)))
        assert peer.read(1) is None
        assert (peer.link.outcome, peer.link.usable) == (INVALID, True)


def test_a_response_that_nobody_requested(peer: Peer) -> None:
    """What follows a response is not taken for the response to the next request."""
    peer.send_entry(1, sealed(1), 1)
    peer.send_entry(1, sealed(1), 1)
    assert peer.read(1) == sealed(1)
    assert peer.read(2) is None
    assert (peer.link.outcome, peer.link.usable) == (MALFORMED, False)


@pytest.mark.parametrize("run", [b"", b"\0", b"\0\0\0\5abcd", b"\xff\xff\xff\xff" + bytes(50), bytes(4)])
def test_torn_batches(run: bytes) -> None:
    """A batch without an entry, or with lengths that do not fit, fails the request only."""
    with connected() as peer:
        peer.send(v2.encode_response(v2.Response(v2.BATCH_READ, 0, 7, 0, 1, run)))
        assert peer.batch(0) is None
        assert (peer.link.outcome, peer.link.usable) == (INVALID, True)


def test_misuse(peer: Peer) -> None:
    """Taking a response that nobody requested, and more requests than have room, are errors that end the connection."""
    with pytest.raises(ValueError, match="no batch read is outstanding"):
        peer.link.take_batch(DIGEST.digester, LONG_S)
    assert not peer.link.usable
    with connected(v3=peer.v3) as other:
        for start in range(16):
            assert other.link.ask_batch(7, start, 1, 100, LONG_S)
        with pytest.raises(ValueError, match="outstanding"):
            other.link.ask_batch(7, 16, 1, 100, LONG_S)


@given(
    st.sampled_from([2, 3]),
    st.booleans(),
    st.binary(max_size=200),
    st.lists(st.tuples(st.integers(0, 400), st.integers(0, 255)), max_size=4),
)
def test_damaged_responses(protocol: int, batch: bool, tail: bytes, damage: list[tuple[int, int]]) -> None:
    """Whatever the bytes are, what is returned has been requested and has a valid digest."""
    with connected(v3=protocol == 3, patience_s=0.001) as peer:
        entries = [sealed(entry) for entry in range(3)]
        data = bytearray()
        peer.sent = data
        if batch:
            peer.send_batch(0, entries)
        else:
            peer.send_entry(0, entries[0])
        for at, value in damage:
            if at < len(data):
                data[at] = value
        peer.sock.sendall(bytes(data) + tail)
        got = peer.batch(0) if batch else peer.read(0)
        if isinstance(got, list):
            assert got == entries[: len(got)]
        else:
            assert got is None or got == entries[0]


__all__ = ["peer"]
