"""Our channel against one bookie, Apache BookKeeper's and ours: the same operations have the same outcomes."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from bookie.client import Channel, Digest, DigestType, Flags
from bookie.errors import (
    BookieUnavailable,
    LedgerFenced,
    NoSuchEntry,
    NoSuchLedger,
    UnauthorizedAccess,
)
from tests.interop.targets import Start

pytestmark = pytest.mark.interop

LEDGER = 4711
ENTRIES = 20_000
DIGEST = Digest.of(DigestType.CRC32C, b"pw")


@pytest.fixture
def channel(start_bookies: Start) -> Iterator[Channel]:
    """A channel to one fresh bookie."""
    with Channel.connect("127.0.0.1", start_bookies(1)[0].port) as channel:
        yield channel


def add(channel: Channel, entry: int, payload: bytes = b"payload", digest: Digest = DIGEST, **options: Any) -> None:
    """Add one entry of LEDGER whose LAC is the entry before it."""
    channel.add(LEDGER, entry, payload, digest=digest, lac=entry - 1, length=7 * (entry + 1), **options)


def random_payloads() -> tuple[bytes, Any]:
    """Return payloads of 0 to 300 bytes for ENTRIES entries, and their offsets."""
    chance = np.random.default_rng(7)
    offsets = np.concatenate([[0], np.cumsum(chance.integers(0, 300, ENTRIES))])
    return chance.bytes(int(offsets[-1])), offsets


@pytest.mark.parametrize("kind", DigestType)
def test_entries_come_back(channel: Channel, kind: DigestType) -> None:
    """B21: what was added is read back byte for byte, under each digest, alone, as the last and in a batch."""
    digest = Digest.of(kind, b"pw")
    for entry in range(3):
        add(channel, entry, b"%07d" % entry, digest)
    opened = digest.open(channel.read(LEDGER, 1), LEDGER, 1)
    assert (opened.lac, opened.length, bytes(opened.payload)) == (0, 14, b"0000001")
    assert channel.read_last(LEDGER) == channel.read(LEDGER, 2)
    batch = channel.batch_read(LEDGER, 0)
    batch.verify(digest)
    assert [bytes(payload) for _, payload in batch.payloads(digest)] == [b"0000000", b"0000001", b"0000002"]


def test_stream_and_read_all(channel: Channel) -> None:
    """B1, B21: a stream of 20,000 entries of all sizes comes back whole, in order, over many batches."""
    data, offsets = random_payloads()
    stream = channel.add_batch(LEDGER, 0, data, offsets, digest=DIGEST, outstanding=1000)
    assert (stream.confirmed, stream.length) == (ENTRIES, len(data))
    read = 0
    for batch in channel.batch_read_all(LEDGER, 0, ENTRIES - 1, max_count=777, max_size=100_000):
        assert batch.first == read
        batch.verify(DIGEST)
        for entry, payload in batch.payloads(DIGEST):
            assert payload == data[offsets[entry] : offsets[entry + 1]]
        read = batch.end
    assert read == ENTRIES
    last = DIGEST.open(channel.read_last(LEDGER), LEDGER)
    assert (last.entry, last.length) == (ENTRIES - 1, len(data))
    assert last.lac < ENTRIES - 1


def test_pipelined_reads(channel: Channel) -> None:
    """Hundreds of reads in flight each get their own entry."""
    data, offsets = random_payloads()
    channel.add_batch(LEDGER, 0, data, offsets[:501], digest=DIGEST)
    replies = [channel.read_async(LEDGER, entry) for entry in range(499, -1, -1)]
    for entry, reply in zip(range(499, -1, -1), replies, strict=True):
        assert DIGEST.open(reply.result(), LEDGER, entry).payload == data[offsets[entry] : offsets[entry + 1]]


def test_batch_limits(channel: Channel) -> None:
    """Count and size bound a batch, one entry always comes, and a gap ends it."""
    for entry in (0, 1, 2, 4):
        add(channel, entry, bytes(1000))
    assert len(channel.batch_read(LEDGER, 0, 2)) == 2
    assert len(channel.batch_read(LEDGER, 0, 10)) == 3
    assert len(channel.batch_read(LEDGER, 0, 10, 2200)) == 2
    assert len(channel.batch_read(LEDGER, 0, 10, 1)) == 1
    with pytest.raises(NoSuchEntry):
        channel.batch_read(LEDGER, 3, 10)


def test_what_is_not_there(channel: Channel) -> None:
    """Unknown ledgers and missing entries are told apart."""
    with pytest.raises(NoSuchLedger):
        channel.read(LEDGER, 0)
    with pytest.raises(NoSuchLedger):
        channel.batch_read(LEDGER, 0)
    add(channel, 1)
    with pytest.raises(NoSuchEntry):
        channel.read(LEDGER, 0)
    with pytest.raises(NoSuchEntry):
        list(channel.batch_read_all(LEDGER, 0, 1))


def test_fence(channel: Channel) -> None:
    """B8, B9: a fence returns the last entry and stops the writer and its stream, but recovery goes on."""
    with channel.add_stream(LEDGER, 0, digest=DIGEST) as stream:
        stream.append(b"abc", np.arange(4))
    assert DIGEST.open(channel.fence(LEDGER, DIGEST.master_key) or b"", LEDGER).entry == 2
    with pytest.raises(LedgerFenced):
        add(channel, 3)
    with pytest.raises(LedgerFenced):
        channel.add_batch(LEDGER, 3, b"abc", np.arange(4), digest=DIGEST)
    add(channel, 3, flags=Flags.RECOVERY_ADD | Flags.HIGH_PRIORITY)
    assert channel.batch_read(LEDGER, 0).end == 4


def test_fence_before_the_first_entry(channel: Channel) -> None:
    """B8: fencing an unknown ledger finds nothing and keeps the late writer out."""
    assert channel.fence(LEDGER, DIGEST.master_key) is None
    with pytest.raises(LedgerFenced):
        add(channel, 0)


def test_wrong_password(channel: Channel) -> None:
    """B11: another master key neither adds nor fences."""
    other = Digest.of(DigestType.CRC32C, b"other")
    add(channel, 0)
    with pytest.raises(UnauthorizedAccess):
        add(channel, 1, digest=other)
    with pytest.raises(UnauthorizedAccess):
        channel.fence(LEDGER, other.master_key)
    add(channel, 1)


def test_bookie_killed_under_a_stream(start_bookies: Start) -> None:
    """B1: what a stream saw confirmed before kill -9 is there after the restart."""
    bookie = start_bookies(1)[0]
    data, offsets = random_payloads()
    with Channel.connect("127.0.0.1", bookie.port) as channel:
        stream = channel.add_stream(LEDGER, 0, digest=DIGEST, outstanding=500)
        stream.append(data, offsets[:5001])
        bookie.kill()
        with pytest.raises(BookieUnavailable):
            stream.append(data, offsets)
        confirmed = stream.confirmed
    assert confirmed >= 4500
    bookie.start()
    with Channel.connect("127.0.0.1", bookie.port) as channel:
        for batch in channel.batch_read_all(LEDGER, 0, confirmed - 1):
            batch.verify(DIGEST)
