"""The V3 channel against a scripted peer: its requests, its handling of responses, and missing responses.

The responses of real bookies are tested against real bookies (tests/interop).
"""

import struct
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from bookie.client import BookieInfo, ChannelV3, Digest, DigestType, Extensions, Flags, LacAnswer, ReadAnswer
from bookie.errors import (
    BookieUnavailable,
    DataUnknown,
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
from bookie.pb import wire_pb2 as pb
from tests.client.v3_peer import V3Peer, batch_read, entry_read, ok, refused
from tests.golden.wire_v2 import E0, E1, K0

DIGEST = Digest.of(DigestType.CRC32C)


@pytest.fixture
def peer() -> Iterator[V3Peer]:
    """The bookie's end of the connection, played by the test."""
    with V3Peer() as peer:
        yield peer


@pytest.fixture
def channel(peer: V3Peer) -> Iterator[ChannelV3]:
    """A channel to the scripted peer, which supports all extensions."""
    with ChannelV3.connect("127.0.0.1", peer.port) as channel:
        channel.extensions = Extensions(["batchRead", "writeClose"])
        yield channel


def test_adds(peer: V3Peer, channel: ChannelV3) -> None:
    """An add has ledger, entry, key and bytes; priority, recovery and deferred sync only if requested."""
    plain = channel.add_async(7, 0, b"hello", digest=DIGEST, lac=-1, length=5)
    asked = peer.ask()
    add = asked.addRequest
    assert (add.ledgerId, add.entryId, add.masterKey, add.body) == (7, 0, K0, E0)
    present = [part.HasField(name) for part, name in ((asked.header, "priority"), (add, "flag"), (add, "writeFlags"))]
    assert present == [False] * 3
    flagged = channel.add_stored_async(E1, K0, flags=Flags.RECOVERY_ADD | Flags.HIGH_PRIORITY, deferred_sync=True)
    other = peer.ask()
    assert (other.header.priority, other.addRequest.flag, other.addRequest.writeFlags) == (100, 1, 1)
    peer.respond(
        refused(other, pb.EFENCED), ok(asked, addResponse=pb.AddResponse(status=pb.EOK, ledgerId=7, entryId=0))
    )
    plain.result()
    with pytest.raises(LedgerFenced, match="add of ledger 7, entry 1: answered with code 504"):
        flagged.result()
    with pytest.raises(IncorrectParameter, match="at least 24 bytes, this one has 3"):
        channel.add_stored_async(b"abc", K0)


def test_the_same_entry_twice_at_once(peer: V3Peer, channel: ChannelV3) -> None:
    """Requests for one entry do not wait for each other, and each gets its own response."""
    plain, fence = channel.read_async(7, -1), channel.read_async(7, -1, flags=Flags.FENCE, master_key=K0)
    first, second = peer.ask(), peer.ask()
    assert (second.readRequest.flag, second.readRequest.masterKey) == (pb.ReadRequest.FENCE_LEDGER, K0)
    peer.respond(entry_read(second, E1), refused(first, pb.ENOENTRY), piece=3)
    assert fence.result() == E1
    with pytest.raises(NoSuchEntry):
        plain.result()


def test_reads_tell_the_lac(peer: V3Peer, channel: ChannelV3) -> None:
    """A read returns the bookie's LAC; a missing one is None, not 0."""
    with ThreadPoolExecutor(1) as threads:
        for lac in (5, -1, None):
            answer = threads.submit(channel.read_with_lac, 7, 0)
            peer.respond(entry_read(peer.ask(), E0, lac=lac))
            assert answer.result() == ReadAnswer(0, E0, lac, None)


def test_waits_for_the_lac(peer: V3Peer, channel: ChannelV3) -> None:
    """A long poll requests piggybacking; it ends with the entry, with the LAC alone, or at its timeout."""
    with_entry, lac_only = channel.wait_for_lac_async(7, 0, 1000), channel.wait_for_lac_async(7, 3, 1000)
    asked, other = peer.ask(), peer.ask()
    read = asked.readRequest
    assert (read.entryId, read.previousLAC, read.timeOut, read.flag) == (-1, 0, 1000, pb.ReadRequest.ENTRY_PIGGYBACK)
    bare = ok(other, readResponse=pb.ReadResponse(status=pb.EOK, ledgerId=7, entryId=-1, maxLAC=3))
    risen = entry_read(asked, E1, entry=1, lac=1)
    risen.readResponse.lacUpdateTimestamp = 1_700_000_000_000
    peer.respond(bare, risen)
    assert with_entry.result() == ReadAnswer(1, E1, 1, 1_700_000_000_000)
    assert lac_only.result() == ReadAnswer(None, None, 3, None)


def test_a_wait_outlives_the_time_of_other_requests(peer: V3Peer) -> None:
    """A long poll has its own time in addition; a later request times out independently of it, and is forgotten."""
    with ChannelV3.connect("127.0.0.1", peer.port, timeout_s=0.2) as channel:
        wait = channel.wait_for_lac_async(7, 0, 60_000)
        asked = peer.ask()
        with pytest.raises(RequestTimeout):
            channel.read(7, 0)
        late = peer.ask()
        peer.respond(entry_read(late, E0), entry_read(asked, E1, entry=1, lac=1))
        assert wait.result().entry == 1


def test_streams_have_transactions_of_their_own(peer: V3Peer, channel: ChannelV3) -> None:
    """Two streams and a single add of one ledger are answered in any order; a refusal is matched to its entry."""
    streams = [channel.add_stream(7, first, digest=DIGEST, deferred_sync=True) for first in (0, 100)]
    for stream in streams:
        stream.append(b"abc", np.arange(4))
    single = channel.add_async(7, 1, b"x", digest=DIGEST, lac=0, length=2)
    asked = [peer.ask() for _ in range(7)]
    assert [request.addRequest.entryId for request in asked] == [0, 1, 2, 100, 101, 102, 1]
    assert [request.addRequest.writeFlags for request in asked] == [1] * 6 + [0]
    assert len({request.header.txnId for request in asked}) == 7
    peer.respond(refused(asked[6], pb.EIO), refused(asked[4], pb.EREADONLY), *(ok(asked[k]) for k in (5, 2, 0, 3, 1)))
    assert streams[0].finish().confirmed == 3
    with pytest.raises(WriteError, match="entry 1: answered with code 501"):
        single.result()
    with pytest.raises(Exception, match="entry 101: refused with code 505"):
        streams[1].finish()
    assert streams[1].confirmed == 101


def test_batches(peer: V3Peer, channel: ChannelV3) -> None:
    """A batch read sends its arguments and returns entries and LAC; after a short batch the rest is requested."""
    one = channel.batch_read_async(7, 0, 10, 1 << 30, flags=Flags.FENCE, master_key=K0)
    asked = peer.ask()
    read = asked.batchReadRequest
    assert (read.startEntryId, read.maxCount, read.maxSize) == (0, 10, channel.frame_bytes_max)
    assert (read.flag, read.masterKey) == (pb.ReadRequest.FENCE_LEDGER, K0)
    peer.respond(batch_read(asked, [E0, E1], lac=1))
    result = one.result()
    result.verify(DIGEST)
    assert ([bytes(stored) for _, stored in result], result.lac) == ([E0, E1], 1)

    def serve() -> None:
        for _ in range(2):
            request = peer.ask()
            peer.respond(batch_read(request, [E0 if request.batchReadRequest.startEntryId == 0 else E1]))

    with ThreadPoolExecutor(1) as threads:
        server = threads.submit(serve)
        assert [batch.first for batch in channel.batch_read_all(7, 0, 1, in_flight=1)] == [0, 1]
        server.result()


def test_batches_only_where_they_are_offered(peer: V3Peer, channel: ChannelV3) -> None:
    """A bookie that does not advertise batch reads gets none; one that answers EBADREQ gets no more."""
    batch = channel.batch_read_async(7, 0)
    peer.respond(refused(peer.ask(), pb.EBADREQ))
    with pytest.raises(IllegalOperation, match="answered with code 404"):
        batch.result()
    with pytest.raises(IllegalOperation, match="does not advertise batchRead"):
        channel.batch_read(7, 0)
    channel.extensions = Extensions()
    with pytest.raises(IllegalOperation, match="does not advertise writeClose"):
        channel.write_close(7, K0)


def test_a_malformed_batch_fails_alone(peer: V3Peer, channel: ChannelV3) -> None:
    """Success without entries fails that request, and the channel stays."""
    for parts in ({}, {"batchReadResponse": pb.BatchReadResponse(status=pb.EOK, ledgerId=7, startEntryId=0)}):
        batch = channel.batch_read_async(7, 0)
        peer.respond(ok(peer.ask(), **parts))
        with pytest.raises(ReadError, match="malformed answer"):
            batch.result()


def test_lacs(peer: V3Peer, channel: ChannelV3) -> None:
    """An explicit LAC is sent sealed; a returned one is distinguished from a missing one."""
    with ThreadPoolExecutor(1) as threads:
        written = threads.submit(channel.write_lac, 7, 1, digest=DIGEST)
        asked = peer.ask()
        write = asked.writeLacRequest
        packet = bytes.fromhex("00000000000000070000000000000001777bd7f3")
        assert (write.ledgerId, write.lac, write.masterKey, write.body) == (7, 1, K0, packet)
        peer.respond(ok(asked))
        written.result()
        for parts in ({"lacBody": packet, "lastEntryBody": E1}, {"lacBody": packet}, {"lastEntryBody": E1}):
            reported = threads.submit(channel.read_lac, 7)
            asked = peer.ask()
            part = pb.ReadLacResponse(status=pb.EOK, ledgerId=7, **parts)
            peer.respond(ok(asked, readLacResponse=part))
            assert reported.result() == LacAnswer(parts.get("lacBody"), parts.get("lastEntryBody"))


def test_what_a_bookie_tells(peer: V3Peer, channel: ChannelV3) -> None:
    """Disk space, the list of entries, force and write close work."""
    with ThreadPoolExecutor(1) as threads:
        info = threads.submit(channel.bookie_info)
        asked = peer.ask()
        assert asked.getBookieInfoRequest.requested == 3
        part = pb.GetBookieInfoResponse(status=pb.EOK, totalDiskCapacity=10, freeDiskSpace=4)
        peer.respond(ok(asked, getBookieInfoResponse=part))
        assert info.result() == BookieInfo(total=10, free=4)

        listed = threads.submit(channel.list_entries, 7)
        asked = peer.ask()
        data = struct.pack(">ii56xqqii", 0, 1, 0, 9, 1, 3)
        entries = pb.GetListOfEntriesOfLedgerResponse(status=pb.EOK, ledgerId=7, availabilityOfEntriesOfLedger=data)
        peer.respond(ok(asked, getListOfEntriesOfLedgerResponse=entries))
        available = listed.result()
        assert [entry for entry in range(-1, 12) if entry in available] == [0, 3, 6, 9]

        forced = threads.submit(channel.force, 7)
        asked = peer.ask()
        assert asked.forceLedgerRequest.ledgerId == 7
        peer.respond(ok(asked))
        forced.result()
        closed = threads.submit(channel.write_close, 7, K0)
        asked = peer.ask()
        assert asked.writeCloseRequest.masterKey == K0
        peer.respond(ok(asked))
        closed.result()


@pytest.mark.parametrize(
    ("status", "error"),
    [(402, NoSuchLedger), (403, NoSuchEntry), (404, ReadError), (501, ReadError), (507, DataUnknown)],
)
def test_statuses(peer: V3Peer, channel: ChannelV3, status: int, error: type) -> None:
    """Each status becomes its exception, and unspecific ones that of the operation."""
    read = channel.read_async(7, 0)
    peer.respond(refused(peer.ask(), status))
    with pytest.raises(error):
        read.result()


def test_a_status_of_no_meaning_ends_the_connection(peer: V3Peer, channel: ChannelV3) -> None:
    """An unknown status ends the connection."""
    reads = [channel.read_async(7, entry) for entry in range(2)]
    txn = peer.ask().header.txnId
    peer.send(bytes.fromhex(f"0000000b0a060803100118{txn:02x}10d804"))
    for failed in reads:
        with pytest.raises(ProtocolVersionMismatch, match="600"):
            failed.result()


def test_a_v2_answer_ends_the_connection(peer: V3Peer, channel: ChannelV3) -> None:
    """A V2 response on a V3 connection ends it."""
    read = channel.read_async(7, 0)
    peer.ask()
    peer.send(bytes.fromhex("0000001802020000000000020000000000000007ffffffffffffffff"))
    with pytest.raises(BookieUnavailable, match="given up: response 0 at byte 0 is not a V3 response"):
        read.result()
