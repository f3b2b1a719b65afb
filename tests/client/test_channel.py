"""The channel against a scripted peer: framing, matching, limits, and what happens when the connection ends.

The responses of real bookies are tested against real bookies (tests/interop).
"""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from bookie.client import Channel, Flags, Reply, StoredBatch
from bookie.errors import (
    BookieReadOnly,
    BookieUnavailable,
    ClientClosed,
    IllegalOperation,
    IncorrectParameter,
    LedgerFenced,
    NoSuchEntry,
    NoSuchLedger,
    ProtocolVersionMismatch,
    ReadError,
    RequestTimeout,
    WriteError,
)
from tests.client.wire_peer import DIGEST, WirePeer, batch_answer
from tests.golden.wire_v2 import E0, E1, FRAMES, KP
from tests.reference import record as entries
from tests.reference.wire_v2 import ADD, AUTH, BATCH_READ, READ, Response, encode_response


def test_worked_frames_go_out_and_come_back(peer: WirePeer, channel: Channel) -> None:
    """Add, read, fence and batch read send the worked frames, and understand the worked responses."""
    add = channel.add_async(7, 0, b"hello", digest=DIGEST, lac=-1, length=5)
    assert peer.request().body == E0
    peer.send(FRAMES["add_ok"])
    add.result()
    read = channel.read_async(7, 9)
    assert peer.request().entry == 9
    peer.send(FRAMES["read_no_entry"])
    with pytest.raises(NoSuchEntry, match="read of ledger 7, entry 9: answered with code 2"):
        read.result()
    fence = channel.read_async(7, -1, flags=Flags.FENCE, master_key=KP)
    assert peer.request().key == KP
    peer.send(FRAMES["fence_ok"])
    assert bytes(DIGEST.open(fence.result(), 7).payload) == b"world!"


@pytest.mark.parametrize("piece", [1, 3, 7])
def test_torn_frames(peer: WirePeer, channel: Channel, piece: int) -> None:
    """Responses that arrive byte by byte are assembled."""
    batch, read = channel.batch_read_async(7, 0), channel.read_async(7, 0)
    request_id = peer.request().request_id
    assert peer.request().op == READ
    answers = Response(READ, 0, 7, 0, body=E0), Response(BATCH_READ, 0, 7, 0, request_id, entries.pack([E0, E1]))
    peer.send(b"".join(map(encode_response, answers)), piece=piece)
    assert read.result() == E0
    result = batch.result()
    assert [(entry, bytes(stored)) for entry, stored in result] == [(0, E0), (1, E1)]


def test_answers_in_any_order(peer: WirePeer, channel: Channel) -> None:
    """Pipelined requests are matched by their keys, not by their order."""
    reads = {entry: channel.read_async(7, entry) for entry in range(5)}
    batches = {start: channel.batch_read_async(7, start) for start in (10, 20)}
    ids = {request.entry: request.request_id for request in (peer.request() for _ in range(7))}
    peer.answer(
        batch_answer(ids[20], 20, [b"x"]),
        *(Response(READ, 0, 7, entry, body=bytes([entry])) for entry in (3, 1, 4, 0, 2)),
        batch_answer(ids[10], 10, [b"y", b"z"]),
    )
    assert [reads[entry].result() for entry in range(5)] == [bytes([entry]) for entry in range(5)]
    assert [batches[start].result().end for start in (10, 20)] == [12, 21]


def test_unasked_answers_are_dropped(peer: WirePeer, channel: Channel) -> None:
    """Responses that belong to no request, including AUTH, change nothing."""
    read = channel.read_async(7, 0)
    peer.request()
    peer.answer(
        Response(ADD, 0, 7, 0), Response(READ, 0, 8, 0), Response(AUTH, body=b"?"), Response(READ, body=E0, ledger=7)
    )
    assert read.result() == E0


def test_same_name_waits(peer: WirePeer, channel: Channel) -> None:
    """A fence waits for an outstanding read of the last entry, since their responses could not be told apart."""
    plain = channel.read_async(7, -1)
    assert peer.request().flags == 0
    with ThreadPoolExecutor(1) as threads:
        fence = threads.submit(channel.fence, 7, KP)
        other = channel.read_async(7, 0)
        assert peer.request().entry == 0  # a request after the fence, which still waits
        peer.answer(Response(READ, 0, 7, 0, body=E0), Response(READ, 2, 7, -1))
        request = peer.request()
        assert (request.entry, request.flags) == (-1, Flags.FENCE)
        peer.send(FRAMES["fence_ok"])
        assert fence.result() == E1
    assert other.result() == E0
    with pytest.raises(NoSuchEntry):
        plain.result()


def test_timeout_keeps_its_name(peer: WirePeer) -> None:
    """The late response to a read that timed out is not taken for that to a later fence."""
    with Channel.connect("127.0.0.1", peer.port, timeout_s=0.2) as channel:
        with pytest.raises(RequestTimeout, match="read of ledger 7, last entry: no answer in time"):
            channel.read_last(7)
        with pytest.raises(RequestTimeout, match="not sent, 1 unanswered request"):
            channel.fence(7, KP)
        channel.timeout_s = 60.0  # later requests are answered, however slow this machine is
        assert peer.request().flags == 0
        with ThreadPoolExecutor(1) as threads:
            peer.answer(Response(READ, 0, 7, -1, body=E0))
            fence = threads.submit(channel.fence, 7, KP)
            assert peer.request().flags == Flags.FENCE
            peer.send(FRAMES["fence_ok"])
            assert fence.result() == E1


def test_expiry_without_a_waiter(peer: WirePeer) -> None:
    """A reply times out by itself if no caller waits for it."""
    with Channel.connect("127.0.0.1", peer.port, timeout_s=0.1) as channel:
        reply = channel.read_async(7, 0)
        assert channel.connection.wait(lambda: reply.done, lambda: None, timeout_s=60)


def test_hang_up_fails_everything_once(peer: WirePeer, channel: Channel) -> None:
    """The loss of the connection fails everything outstanding, and every later call, with BookieUnavailable."""
    replies: list[Reply[bytes] | Reply[StoredBatch] | Reply[None]] = [
        channel.read_async(7, 0),
        channel.batch_read_async(7, 0),
        channel.add_async(7, 0, b"x", digest=DIGEST, lac=-1, length=1),
    ]
    stream = channel.add_stream(8, 0, digest=DIGEST)
    stream.append(b"abc", np.array([0, 1, 2, 3]))
    for _ in range(6):
        peer.request()
    peer.hang_up()
    for reply in replies:
        with pytest.raises(BookieUnavailable, match="connection lost"):
            reply.result()
    with pytest.raises(BookieUnavailable, match="connection lost"):
        stream.finish()
    with pytest.raises(BookieUnavailable, match="connection lost"):
        channel.read(7, 0)
    assert stream.confirmed == 0


def test_answer_before_the_hang_up_counts(peer: WirePeer, channel: Channel) -> None:
    """Requests that were answered before stay so; only the others fail."""
    first, second = channel.read_async(7, 0), channel.read_async(7, 1)
    peer.request()
    peer.request()
    peer.answer(Response(READ, 0, 7, 0, body=E0))
    peer.hang_up()
    with pytest.raises(BookieUnavailable):
        second.result()
    assert first.result() == E0


@pytest.mark.parametrize("data", ["ffffffff", "7fffffff", "00500000", "0000000402050000", "00000000"])
def test_broken_framing_ends_the_connection(peer: WirePeer, channel: Channel, data: str) -> None:
    """Negative, oversized and empty frames, and unknown operations, end the channel with an error that says so."""
    reply = channel.read_async(7, 0)
    peer.request()
    peer.send(bytes.fromhex(data))
    with pytest.raises(BookieUnavailable, match="connection given up: response 0 at byte 0"):
        reply.result()


def test_frames_up_to_the_limit(peer: WirePeer) -> None:
    """A response of exactly the limit arrives, over several receive buffers; one byte more ends the connection."""
    limit = 6 << 20
    body = bytes(range(256)) * ((limit - 28) // 256) + bytes((limit - 28) % 256)
    with Channel.connect("127.0.0.1", peer.port, frame_bytes_max=limit) as channel:
        for _ in range(2):
            reply = channel.read_async(7, 0)
            peer.request()
            peer.answer(Response(READ, 0, 7, 0, body=body))
            assert reply.result() == body
        reply = channel.read_async(7, 0)
        peer.request()
        peer.send((limit - 3).to_bytes(4, "big"))
        with pytest.raises(BookieUnavailable, match="given up"):
            reply.result()


def test_own_frames_keep_the_limit(peer: WirePeer) -> None:
    """An entry above the limit is refused before it is sent, and the connection stays."""
    with Channel.connect("127.0.0.1", peer.port, frame_bytes_max=1000) as channel:
        with pytest.raises(IncorrectParameter, match="its frame has 1001 bytes; the limit is 1000"):
            channel.add(7, 0, bytes(1001 - 64), digest=DIGEST, lac=-1, length=0)
        with channel.add_stream(7, 0, digest=DIGEST) as stream, pytest.raises(IncorrectParameter, match="payload 0"):
            stream.append(bytes(2000), np.array([0, 2000]))
        reply = channel.batch_read_async(7, 0, 10, 1 << 30)
        assert peer.request().size_max == 1000
        peer.answer(batch_answer(1, 0, [b"x"]))
        assert len(reply.result()) == 1


@pytest.mark.parametrize(
    ("code", "read_error", "add_error"),
    [
        (1, NoSuchLedger, NoSuchLedger),
        (100, ReadError, WriteError),
        (101, ReadError, WriteError),
        (104, LedgerFenced, LedgerFenced),
        (105, BookieReadOnly, BookieReadOnly),
    ],
)
def test_codes(peer: WirePeer, channel: Channel, code: int, read_error: type, add_error: type) -> None:
    """Each code becomes its exception, and unspecific ones that of the operation; a batch read that is a bad request
    is one that the bookie does not know.
    """
    read, batch = channel.read_async(7, 0), channel.batch_read_async(7, 0)
    add = channel.add_async(7, 0, b"", digest=DIGEST, lac=-1, length=0)
    ids = [peer.request().request_id for _ in range(3)]
    peer.answer(Response(READ, code, 7, 0), Response(BATCH_READ, code, 7, 0, ids[1]), Response(ADD, code, 7, 0))
    with pytest.raises(read_error):
        read.result()
    with pytest.raises(IllegalOperation if code == 100 else read_error):
        batch.result()
    with pytest.raises(add_error):
        add.result()


def test_unknown_code_ends_the_connection(peer: WirePeer, channel: Channel) -> None:
    """An unknown code ends the connection."""
    reply = channel.read_async(7, 0)
    other = channel.read_async(7, 1)
    peer.request()
    peer.answer(Response(READ, 55, 7, 0))
    for failed in (reply, other):
        with pytest.raises(ProtocolVersionMismatch, match="55"):
            failed.result()


def serve_batches(peer: WirePeer, last: int, count_max: int, missing: int = -1) -> None:
    """Answer batch reads of entries 0 to `last`, with at most `count_max` entries each, until `last` was sent."""
    reached = -1
    while reached < last:
        request = peer.request()
        count = min(request.count_max, count_max, last + 1 - request.entry)
        if request.entry <= missing < request.entry + count:
            count = missing - request.entry
        if not count:
            peer.answer(Response(BATCH_READ, 2, 7, request.entry, request.request_id))
            return
        payloads = [str(request.entry + k).encode() for k in range(count)]
        peer.answer(batch_answer(request.request_id, request.entry, payloads))
        reached = max(reached, request.entry + count - 1)


@pytest.mark.parametrize("count_max", [1, 7, 10, 1000])
def test_read_all_in_order(peer: WirePeer, channel: Channel, count_max: int) -> None:
    """All entries arrive, once and in order, however few the bookie sends at a time."""
    with ThreadPoolExecutor(1) as threads:
        server = threads.submit(serve_batches, peer, 99, count_max)
        seen = [entry for batch in channel.batch_read_all(7, 0, 99, max_count=10) for entry, _ in batch]
        peer.hang_up()
        assert seen == list(range(100))
        assert server.exception() is None or isinstance(server.exception(), OSError | AssertionError)


def test_read_all_stops_at_a_gap(peer: WirePeer, channel: Channel) -> None:
    """A missing entry raises an error after the entries before it, and is never skipped."""
    with ThreadPoolExecutor(1) as threads:
        threads.submit(serve_batches, peer, 99, 1000, missing=5)
        batches = channel.batch_read_all(7, 0, 99, max_count=10, in_flight=1)
        assert next(batches).end == 5
        with pytest.raises(NoSuchEntry, match="from entry 5"):
            next(batches)


def test_close_fails_what_waits(peer: WirePeer, channel: Channel) -> None:
    """Closing wakes every waiter with ClientClosed, is idempotent, and may come from another thread."""
    replies = [channel.read_async(7, entry) for entry in range(3)]
    threading.Thread(target=channel.close).start()
    for reply in replies:
        with pytest.raises(ClientClosed):
            reply.result()
    channel.close()
    with pytest.raises(ClientClosed):
        channel.read(7, 0)


def test_nobody_listens() -> None:
    """The error has the address and what to check."""
    with WirePeer() as peer:
        port = peer.port
    with pytest.raises(BookieUnavailable, match=f"127.0.0.1:{port}: the bookie is down"):
        Channel.connect("127.0.0.1", port)


def test_many_threads_share_a_channel(peer: WirePeer, channel: Channel) -> None:
    """Frames of threads are never mixed, and each thread gets its own responses."""

    def serve() -> None:
        for _ in range(400):
            request = peer.request()
            peer.answer(
                Response(READ, 0, request.ledger, request.entry, body=b"%d/%d" % (request.ledger, request.entry))
            )

    def client(ledger: int) -> list[bytes]:
        return [channel.read(ledger, entry) for entry in range(100)]

    with ThreadPoolExecutor(5) as threads:
        server = threads.submit(serve)
        for ledger, answers in enumerate(threads.map(client, range(4))):
            assert answers == [b"%d/%d" % (ledger, entry) for entry in range(100)]
        server.result()
