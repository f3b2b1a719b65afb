"""One bookie and two languages: our channel reads what Java's client wrote, and the other way round, byte for byte."""

from collections.abc import Iterator
from typing import Any

import pytest

from bookie.client import Channel, Digest, DigestType
from bookie.errors import IncorrectParameter
from tests.fixtures.java_peer import BATCH_READS
from tests.interop.driver import Driver
from tests.interop.payload import payload
from tests.interop.targets import Start, Target

pytestmark = pytest.mark.interop

LEDGER = 4711
SIZE = 200
FRAME_MAX = 5 << 20
ADD_OVERHEAD = 4 + 4 + 20 + 36


@pytest.fixture
def target(start_bookies: Start) -> Target:
    """Start a new bookie for the test."""
    return start_bookies(1)[0]


@pytest.fixture
def channel(target: Target) -> Iterator[Channel]:
    """A channel of ours to the bookie."""
    with Channel.connect("127.0.0.1", target.port, timeout_s=30) as channel:
        yield channel


def test_java_writes_we_read(target: Target, channel: Channel, java_driver: Driver) -> None:
    """Under each digest, entries sealed by Java's client verify in ours and are what ours would have sealed."""
    for kind in DigestType:
        digest, ledger = Digest.of(kind, b"pw"), LEDGER + kind
        common: dict[str, Any] = {
            "bookie": target.id,
            "ledger": ledger,
            "size": SIZE,
            "digest": kind.name,
            "password": "pw",
        }
        for entry in range(3):
            assert java_driver.call("raw_add", entry=entry, **common)["code"] == 0
        sealed = digest.seal(ledger, 1, payload(ledger, 1, SIZE), lac=0, length=2 * SIZE)
        assert channel.read(ledger, 1) == sealed
        if not BATCH_READS:
            continue
        batch = channel.batch_read(ledger, 0)
        batch.verify(digest)
        assert [bytes(data) for _, data in batch.payloads(digest)] == [payload(ledger, e, SIZE) for e in range(3)]
        assert bytes(batch[1]) == sealed


def test_we_write_java_reads(target: Target, channel: Channel, java_driver: Driver) -> None:
    """Under each digest, entries sealed by ours arrive in Java's client unchanged, alone and in a batch."""
    for kind in DigestType:
        digest, ledger = Digest.of(kind, b"pw"), LEDGER + kind
        sealed = [digest.seal(ledger, e, payload(ledger, e, SIZE), lac=e - 1, length=SIZE * (e + 1)) for e in range(3)]
        for stored in sealed:
            channel.add_stored_async(stored, digest.master_key).result()
        common: dict[str, Any] = {"bookie": target.id, "ledger": ledger, "password": "pw"}
        assert java_driver.call("raw_read", entry=2, **common)["data"] == sealed[2].hex()
        if BATCH_READS:
            batch = java_driver.call("raw_batch", entry=0, count=10, **common)
            assert batch["data"] == [stored.hex() for stored in sealed]
        assert java_driver.call("raw_add", entry=3, digest=kind.name, **common)["code"] == 0, "one master key"


def test_the_frame_limit_is_one(channel: Channel) -> None:
    """The largest entry that fits a frame is taken and read back, and our client refuses to send a larger one."""
    digest = Digest.of(DigestType.CRC32C, b"pw")
    largest = payload(LEDGER, 0, FRAME_MAX - ADD_OVERHEAD)
    channel.add(LEDGER, 0, largest, digest=digest, lac=-1, length=len(largest))
    assert digest.open(channel.read(LEDGER, 0), LEDGER, 0).payload == largest
    with pytest.raises(IncorrectParameter):
        channel.add(LEDGER, 1, largest + b"x", digest=digest, lac=0, length=0)
    channel.add(LEDGER, 1, b"", digest=digest, lac=0, length=len(largest))
    assert len(digest.open(channel.read(LEDGER, 1), LEDGER, 1).payload) == 0
