"""V3 batch reads and write closes, as one of our real bookies advertises them; the results equal those of V2."""

from collections.abc import Callable, Iterator

import numpy as np
import pytest

from bookie.client import Channel, ChannelV3, Digest, DigestType, Extensions, Flags
from bookie.errors import IllegalOperation, LedgerFenced, NoSuchEntry, NoSuchLedger, UnauthorizedAccess
from bookie.metadata import open_driver
from bookie.metadata.bookies.service_info import parse_service_info
from tests.fixtures.bookies import BookieProcess

pytestmark = pytest.mark.leaks("gRPC keeps its own threads and their descriptors as long as the process lives")

DIGEST = Digest.of(DigestType.CRC32C, b"pw")
LEDGER = 7


@pytest.fixture
def bookie(bookies: Callable[..., list[BookieProcess]]) -> BookieProcess:
    """Start one bookie of this project."""
    return bookies(1)[0]


@pytest.fixture
def channel(bookie: BookieProcess) -> Iterator[ChannelV3]:
    """A channel that knows what the bookie advertises, as a client learns it from the metadata store."""
    driver = open_driver(f"grpc://{bookie.admin}")
    driver.start()
    info = parse_service_info(bookie.id, driver.bookies.info(bookie.id) or b"")
    driver.stop()
    with ChannelV3.connect(*bookie.address) as channel:
        with pytest.raises(IllegalOperation):
            channel.batch_read(LEDGER, 0)
        channel.extensions = Extensions(info.v3_extensions())
        yield channel


@pytest.mark.parametrize(("sizes", "count"), [((0, 300), 20_000), ((3000, 20_000), 400), ((1 << 20, 4 << 20), 12)])
def test_batches_in_both_protocols(
    bookie: BookieProcess, channel: ChannelV3, sizes: tuple[int, int], count: int
) -> None:
    """Small entries, entries that are sent by reference, and entries with a longer length are the same as in V2."""
    chance = np.random.default_rng(11)
    offsets = np.concatenate([[0], np.cumsum(chance.integers(*sizes, count))])
    data = chance.bytes(int(offsets[-1]))
    channel.add_batch(LEDGER, 0, data, offsets, digest=DIGEST, outstanding=1000)
    read = 0
    with Channel.connect(*bookie.address) as old:
        for batch in channel.batch_read_all(LEDGER, 0, count - 1, max_count=500, max_size=5 << 20):
            assert batch.first == read
            assert batch.lac is not None
            assert batch.lac >= count - 1001
            batch.verify(DIGEST)
            for entry, payload in batch.payloads(DIGEST):
                assert payload == data[offsets[entry] : offsets[entry + 1]]
            same = old.batch_read(LEDGER, batch.first, len(batch), 5 << 20)
            assert [bytes(stored) for _, stored in same] == [bytes(batch[entry]) for entry, _ in same]
            read = batch.end
    assert read == count


@pytest.mark.thorough
def test_limits_of_a_batch(channel: ChannelV3) -> None:
    """Count and size limit a batch, the first entry always comes, a gap ends it, and missing entries are an error."""
    channel.add_batch(LEDGER, 0, bytes(3000), np.arange(0, 3001, 1000), digest=DIGEST)
    channel.add_batch(LEDGER, 4, bytes(1000), np.array([0, 1000]), digest=DIGEST)
    assert len(channel.batch_read(LEDGER, 0)) == 3
    assert len(channel.batch_read(LEDGER, 0, 2)) == 2
    assert len(channel.batch_read(LEDGER, 0, 10, 1)) == 1
    assert len(channel.batch_read(LEDGER, 0, 10, 2 * 1100)) == 2
    with pytest.raises(NoSuchEntry):
        channel.batch_read(LEDGER, 3)
    with pytest.raises(NoSuchLedger):
        channel.batch_read(LEDGER + 1, 0)


@pytest.mark.thorough
def test_a_batch_read_may_fence(channel: ChannelV3) -> None:
    """With the right key a batch read fences and reads; with another one it does neither."""
    channel.add(LEDGER, 0, b"x", digest=DIGEST, lac=-1, length=1)
    other = Digest.of(DigestType.CRC32C, b"other")
    with pytest.raises(UnauthorizedAccess):
        channel.batch_read(LEDGER, 0, flags=Flags.FENCE, master_key=other.master_key)
    channel.add(LEDGER, 1, b"x", digest=DIGEST, lac=0, length=2)
    assert channel.batch_read(LEDGER, 0, flags=Flags.FENCE, master_key=DIGEST.master_key).end == 2
    with pytest.raises(LedgerFenced):
        channel.add(LEDGER, 2, b"x", digest=DIGEST, lac=1, length=3)


def test_a_write_close_closes_nothing(channel: ChannelV3) -> None:
    """A write close needs the key, and refuses no add."""
    channel.add(LEDGER, 0, b"x", digest=DIGEST, lac=-1, length=1)
    channel.write_close(LEDGER, DIGEST.master_key)
    with pytest.raises(UnauthorizedAccess):
        channel.write_close(LEDGER, Digest.of(DigestType.CRC32C, b"other").master_key)
    channel.add(LEDGER, 1, b"x", digest=DIGEST, lac=0, length=2)
    assert channel.read_last(LEDGER) == channel.read(LEDGER, 1)
