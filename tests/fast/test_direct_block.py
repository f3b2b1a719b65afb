"""Test responses that are received in a block of columns, where their payloads only have to move up."""

import itertools
import random

import numpy as np
import pytest

from bookie._fast.client.direct_link import INVALID, REFUSED
from bookie._fast.client.payload_block import PayloadBlock
from bookie._fast.wire import record
from tests.fast.direct_peer import DIGEST, FRAME_BYTES_MAX, LONG_S, Peer, connected, peer, sealed
from tests.reference import record as model
from tests.reference import wire_v2 as v2

__all__ = ["peer"]

OVERHEAD = 4 + DIGEST.overhead


def ask(peer: Peer, start: int, count: int = 100) -> None:
    """Send a batch read."""
    assert peer.link.ask_batch(7, start, count, FRAME_BYTES_MAX, LONG_S)


def send(peer: Peer, *batches: tuple[int, list[bytes]], number: int = 1) -> None:
    """Send the responses to batch reads, one after the other; the first one has this number."""
    peer.sent = bytearray()
    for k, (start, entries) in enumerate(batches):
        peer.send_batch(start, entries, number=number + k)
    data, peer.sent = bytes(peer.sent), None
    peer.send(data)


def take(peer: Peer, block: PayloadBlock, entry: int) -> tuple[int, memoryview, np.ndarray]:
    """Receive a response with the help of a block, if it begins with this entry."""
    got = peer.link.take_batch(DIGEST.digester, LONG_S, block, entry)
    assert got is not None
    return got[:3]


def values_of(block: PayloadBlock) -> list[bytes]:
    """Empty a block, and return its payloads."""
    edges, values = block.take()[4:]
    assert edges is not None
    assert values is not None
    return [bytes(values[a:b]) for a, b in itertools.pairwise(np.frombuffer(edges, dtype=np.int32))]


@pytest.mark.parametrize("seed", range(30))
def test_whatever_is_received(peer: Peer, seed: int) -> None:
    """Batches of any sizes, some ahead of others, in blocks that are full now and then, keep every payload."""
    chance = random.Random(seed)
    block = PayloadBlock(chance.choice((100_000, 400_000)), chance.choice((20, 1000)))
    expected: list[bytes] = []
    found: list[bytes] = []
    start, asked = 0, 0
    ahead: list[tuple[int, list[bytes]]] = []
    for _ in range(25):
        bodies = [chance.randbytes(chance.choice((0, 1, 50, 3000, 9000))) for _ in range(chance.choice((1, 5, 12, 40)))]
        ask(peer, start)
        ahead.append((start, [sealed(start + k, body) for k, body in enumerate(bodies)]))
        start += len(bodies)
        expected += bodies
        if len(ahead) < chance.choice((1, 2, 3)):
            continue
        send(peer, *ahead, number=asked + 1)
        asked += len(ahead)
        for first, _ in ahead:
            entry, run, offsets = take(peer, block, first)
            assert entry == first
            half = chance.choice((0, len(offsets) // 2))
            for one in (slice(None, half + 1), slice(half, None)):
                if len(offsets[one]) < 2:
                    continue
                id_, edges = entry + (half if one.start else 0), offsets[one]
                if not block.add(id_, run, edges, OVERHEAD):
                    found += values_of(block)
                    assert block.add(id_, run, edges, OVERHEAD)
        ahead.clear()
    if ahead:
        send(peer, *ahead, number=asked + 1)
    for first, _ in ahead:
        entry, run, offsets = take(peer, block, first)
        assert entry == first
        if not block.add(entry, run, offsets, OVERHEAD):
            found += values_of(block)
            assert block.add(entry, run, offsets, OVERHEAD)
    assert found + values_of(block) == expected
    assert peer.link.usable


def test_a_large_batch_lies_in_the_block(peer: Peer) -> None:
    """It is received behind the payloads, and not where it has no room, or while another one is to be added."""
    block = PayloadBlock(300_000, 1000)
    bodies = [bytes([k]) * 1000 for k in range(60)]
    starts = range(0, 240, 60)
    for start in starts:
        ask(peer, start)
    send(peer, *[(start, [sealed(start + k, body) for k, body in enumerate(bodies)]) for start in starts])
    first, run, offsets = take(peer, block, 0)
    assert block.add(first, run, offsets, OVERHEAD)
    first, run, offsets = take(peer, block, 60)
    _, ahead, edges = take(peer, block, 120)
    assert block.add(first, run, offsets, OVERHEAD)
    assert block.add(120, ahead, edges, OVERHEAD)
    _, last, edges = take(peer, block, 7)
    assert block.add(180, last, edges, OVERHEAD)
    values = block.take()[5]
    assert values is not None
    assert bytes(values) == b"".join(bodies) * 4
    # In V3, entries that a bookie has not padded are copied anyway.
    assert [one.obj is values.obj for one in (run, ahead, last)] == [not peer.v3, False, False]


def test_what_is_to_be_added_is_not_written_over(peer: Peer) -> None:
    """Other entries cannot be added before a batch that lies in the block: they go into another one."""
    block = PayloadBlock(300_000, 1000)
    other = memoryview(model.pack([sealed(0, b"other")]))
    assert block.add(0, other, record.offsets(other), OVERHEAD)
    bodies = [b"%d" % k * 1000 for k in range(60)]
    ask(peer, 2)
    send(peer, (2, [sealed(2 + k, body) for k, body in enumerate(bodies)]))
    first, run, offsets = take(peer, block, 2)
    late = memoryview(model.pack([sealed(1, b"late" * 5000)]))
    if not peer.v3:
        assert not block.add(1, late, record.offsets(late), OVERHEAD)
        assert values_of(block) == [b"other"]
    assert block.add(1, late, record.offsets(late), OVERHEAD)
    assert block.add(first, run, offsets, OVERHEAD)
    assert values_of(block)[-61:] == [b"late" * 5000, *bodies]


def test_failures_leave_nothing_in_the_block(peer: Peer) -> None:
    """After an error, and after a batch whose first entry is invalid, blocks and connection are as before."""
    block = PayloadBlock(300_000, 1000)
    bodies = [bytes([k]) * 1000 for k in range(60)]
    good = [sealed(k, body) for k, body in enumerate(bodies)]
    ask(peer, 0)
    ask(peer, 0)
    send(peer, (0, [b"x" * 5000, *good[1:]]), (0, [*good[:40], b"x" * 5000, *good[41:]]))
    assert peer.link.take_batch(DIGEST.digester, LONG_S, block, 0) is None
    assert peer.link.outcome == INVALID
    first, run, offsets = take(peer, block, 0)
    assert len(offsets) == 41
    assert block.add(first, run, offsets, OVERHEAD)
    assert values_of(block) == bodies[:40]
    assert peer.link.usable


def test_a_refusal() -> None:
    """A response with an error code leaves nothing in the block."""
    block = PayloadBlock(300_000, 1000)
    with connected() as peer:
        ask(peer, 0)
        peer.send(v2.encode_response(v2.Response(v2.BATCH_READ, 1, 7, 0, 1)))
        assert peer.link.take_batch(DIGEST.digester, LONG_S, block, 0) is None
        assert (peer.link.outcome, peer.link.usable) == (REFUSED, True)
        with pytest.raises(ValueError, match="no entries"):
            block.take()


def test_small_batches_and_blocks_without_payloads(peer: Peer) -> None:
    """Small batches are copied, and a block that has no payloads lends no memory."""
    for block in (PayloadBlock(300_000, 1000), PayloadBlock(300_000, 1000, values=False)):
        body = b"x" * (10 if block.values else 30_000)
        ask(peer, 3)
        peer.send_batch(3, [sealed(3, body)], number=1 if block.values else 2)
        first, run, offsets = take(peer, block, 3)
        assert block.add(first, run, offsets, OVERHEAD)
        assert (block.rows, block.nbytes) == (1, 10 if block.values else 0)
