"""Streams of adds: the window, the LAC and the length in each entry, refusals and timeouts."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from bookie.client import Channel
from bookie.errors import IllegalOperation, LedgerFenced, NoSuchEntry, RequestTimeout
from tests.client.wire_peer import DIGEST, WirePeer
from tests.reference.wire_v2 import ADD, READ, Response


def test_stream_window_and_lac(peer: WirePeer, channel: Channel) -> None:
    """At most `outstanding` adds are unanswered, and each entry has the LAC and length of its moment."""
    payloads = b"".join(bytes([65 + k]) * (k + 1) for k in range(6))
    offsets = np.cumsum([0, 1, 2, 3, 4, 5, 6])
    with (
        ThreadPoolExecutor(1) as threads,
        channel.add_stream(7, 10, digest=DIGEST, lac=9, length=100, outstanding=4) as s,
    ):
        writer = threads.submit(s.append, payloads, offsets)
        seen = [DIGEST.open(peer.request().body or b"", 7) for _ in range(4)]
        assert [(e.entry, e.lac, e.length) for e in seen] == [(10, 9, 101), (11, 9, 103), (12, 9, 106), (13, 9, 110)]
        peer.answer(Response(ADD, 0, 7, 11))
        peer.answer(Response(ADD, 0, 7, 10))
        seen = [DIGEST.open(peer.request().body or b"", 7) for _ in range(2)]
        assert [(e.entry, e.lac, e.length) for e in seen] == [(14, 11, 115), (15, 11, 121)]
        assert writer.result() == 16
        assert s.confirmed == 12
        peer.answer(*(Response(ADD, 0, 7, entry) for entry in (15, 14, 13, 12)))
    assert (s.confirmed, s.length) == (16, 121)
    assert 0 < s.latency_ms(0.5) <= s.latency_ms(1.0)


def test_stream_stops_at_a_refusal(peer: WirePeer, channel: Channel) -> None:
    """A refused add ends the stream with its error, and entries from it on do not count as stored."""
    stream = channel.add_stream(7, 0, digest=DIGEST)
    stream.append(b"abcd", np.arange(5))
    for _ in range(4):
        peer.request()
    peer.answer(*(Response(ADD, code, 7, entry) for entry, code in ((3, 0), (0, 0), (2, 104), (1, 0))))
    with pytest.raises(LedgerFenced, match="add of ledger 7, entry 2: refused with code 104"):
        stream.finish()
    assert stream.confirmed == 2


def test_stream_without_answers_times_out(peer: WirePeer) -> None:
    """A bookie that does not answer does not hang the writer."""
    with Channel.connect("127.0.0.1", peer.port, timeout_s=0.2) as channel:
        stream = channel.add_stream(7, 0, digest=DIGEST, outstanding=2)
        with pytest.raises(RequestTimeout, match=r"waited 0\.2 s for room in the window"):
            stream.append(b"abcd", np.arange(5))


def test_stream_given_up(peer: WirePeer, channel: Channel) -> None:
    """Responses to a stream that failed are dropped, and its keys are free only after them."""
    with ThreadPoolExecutor(1) as threads:
        batch = threads.submit(channel.add_batch, 7, 0, b"ab", np.arange(3), digest=DIGEST)
        for _ in range(2):
            peer.request()
        peer.answer(Response(ADD, 104, 7, 0))
        assert isinstance(batch.exception(), LedgerFenced)
        again = threads.submit(channel.add, 7, 1, b"c", digest=DIGEST, lac=-1, length=1)
        below = channel.add_async(8, 1, b"c", digest=DIGEST, lac=-1, length=1)
        assert peer.request().ledger == 8  # while the other stream waits
        peer.answer(Response(ADD, 104, 7, 1))
        assert (peer.request().body or b"").endswith(b"c")
        peer.answer(Response(ADD, 0, 7, 1), Response(ADD, 0, 8, 1))
        again.result()
        below.result()


def test_one_writer_per_ledger(peer: WirePeer, channel: Channel) -> None:
    """A second stream, or an add among a stream's entries, is refused, since responses could not be told apart."""
    channel.add_stream(7, 5, digest=DIGEST)
    with pytest.raises(IllegalOperation):
        channel.add_stream(7, 50, digest=DIGEST)
    with pytest.raises(IllegalOperation):
        channel.add(7, 5, b"", digest=DIGEST, lac=-1, length=0)
    channel.add_async(7, 4, b"", digest=DIGEST, lac=-1, length=0)
    assert peer.request().entry == 4


def test_stream_waits_for_earlier_adds(peer: WirePeer, channel: Channel) -> None:
    """A stream begins only after earlier adds of its entries are answered."""
    early = channel.add_async(7, 1, b"early", digest=DIGEST, lac=-1, length=5)
    assert (peer.request().body or b"").endswith(b"early")
    with ThreadPoolExecutor(1) as threads:
        batch = threads.submit(channel.add_batch, 7, 0, b"ab", np.arange(3), digest=DIGEST)
        read = channel.read_async(7, 0)
        assert peer.request().op == READ  # while the stream waits
        peer.answer(Response(ADD, 0, 7, 1), Response(READ, 2, 7, 0))
        early.result()
        assert [(peer.request().body or b"")[-1:] for _ in range(2)] == [b"a", b"b"]
        peer.answer(Response(ADD, 0, 7, 0), Response(ADD, 0, 7, 1))
        assert batch.result().confirmed == 2
    with pytest.raises(NoSuchEntry):
        read.result()


def test_stream_behind_an_add_without_an_answer(peer: WirePeer) -> None:
    """A stream whose entries stay in use by an earlier add is refused with an error that says so."""
    with Channel.connect("127.0.0.1", peer.port, timeout_s=0.2) as channel:
        with pytest.raises(RequestTimeout, match="add of ledger 7, entry 0: no answer in time"):
            channel.add(7, 0, b"early", digest=DIGEST, lac=-1, length=5)
        with pytest.raises(RequestTimeout, match="adds of ledger 7, entry 0 and on: not sent, 1 unanswered request"):
            channel.add_stream(7, 0, digest=DIGEST)
    assert (peer.request().body or b"").endswith(b"early")
