"""Batches of entries: views of the receive buffer, offsets, verification, malformed responses."""

import numpy as np
import pytest

from bookie.client import Channel
from bookie.errors import DigestMismatch, ReadError
from tests.client.wire_peer import DIGEST, WirePeer, batch_answer
from tests.golden.wire_v2 import E0
from tests.reference import record as entries
from tests.reference.wire_v2 import BATCH_READ, READ, Response


@pytest.mark.parametrize("body", [b"", b"\0\0\0\x29" + E0[:-1], entries.pack([E0]) + b"\0"])
def test_malformed_batch(peer: WirePeer, channel: Channel, body: bytes) -> None:
    """Success without entries, or with a torn one, fails that request alone."""
    batch = channel.batch_read_async(7, 0)
    peer.answer(Response(BATCH_READ, 0, 7, 0, peer.request().request_id, body))
    with pytest.raises(ReadError, match="malformed answer"):
        batch.result()
    read = channel.read_async(7, 0)
    peer.request()
    peer.answer(Response(READ, 0, 7, 0, body=E0))
    assert read.result() == E0


def test_batch_is_one_buffer_with_offsets(peer: WirePeer, channel: Channel) -> None:
    """Entries are views of the receive buffer, and do not change while more arrives."""
    batches = []
    for round_ in range(40):
        reply = channel.batch_read_async(7, 10 * round_)
        peer.answer(batch_answer(peer.request().request_id, 10 * round_, [bytes([round_]) * 20_000] * 10))
        batches.append(reply.result())
    for round_, batch in enumerate(batches):
        batch.verify(DIGEST)
        assert (len(batch), batch.first, batch.end) == (10, 10 * round_, 10 * round_ + 10)
        assert batch.offsets.dtype == np.int64
        starts, ends = batch.payload_spans(DIGEST)
        assert (ends - starts == 20_000).all()
        assert all(payload == bytes([round_]) * 20_000 for _, payload in batch.payloads(DIGEST))
        assert batch[batch.first].obj is batch.buffer.obj
    with pytest.raises(IndexError, match="entry 10 is not in this batch of entries 0 to 9"):
        batches[0][10]


def test_damaged_batch_is_named(peer: WirePeer, channel: Channel) -> None:
    """verify names the first entry whose digest is wrong."""
    reply = channel.batch_read_async(7, 0)
    answer = batch_answer(peer.request().request_id, 0, [b"one", b"two", b"three"])
    peer.answer(Response(BATCH_READ, 0, 7, 0, answer.request_id, answer.body.replace(b"two", b"tow")))
    with pytest.raises(DigestMismatch, match="ledger 7, entry 1: no valid CRC32C digest"):
        reply.result().verify(DIGEST)
