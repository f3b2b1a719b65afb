"""Our V3 channel against one bookie, Apache BookKeeper's and ours: the same operations have the same outcomes."""

import itertools
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from bookie.client import Channel, ChannelV3, Digest, DigestType, Extensions, Flags
from bookie.errors import (
    BookieUnavailable,
    IllegalOperation,
    LedgerFenced,
    NoSuchEntry,
    NoSuchLedger,
    UnauthorizedAccess,
)
from tests.interop.conftest import Standing
from tests.interop.targets import Start

pytestmark = pytest.mark.interop

ENTRIES = 10_000
DIGEST = Digest.of(DigestType.CRC32C, b"pw")
LONG_MS = 60_000


@pytest.fixture(scope="module")
def ledgers() -> Iterator[int]:
    """Ledger ids, far enough apart for a test to use a few hundred after its own."""
    return itertools.count(1_000_000, 1000)


@pytest.fixture
def ledger(ledgers: Iterator[int]) -> int:
    """A ledger of the test's own, because the bookies stand for all tests of this file."""
    return next(ledgers)


@pytest.fixture(params=["java", "ours"])
def port(request: pytest.FixtureRequest, standing: Standing, shared_cluster_uri: str) -> int:
    """The port of a bookie: once Apache BookKeeper's, and once ours."""
    return standing(request.param, shared_cluster_uri).port


@pytest.fixture
def channel(port: int) -> Iterator[ChannelV3]:
    """A channel to the bookie."""
    with ChannelV3.connect("127.0.0.1", port) as channel:
        yield channel


def stored(ledger: int, entry: int, lac: int | None = None, digest: Digest = DIGEST) -> bytes:
    """Return an entry as it is stored. Its LAC is the entry before it unless given."""
    return digest.seal(ledger, entry, b"payload", lac=entry - 1 if lac is None else lac, length=7 * (entry + 1))


def add(channel: ChannelV3 | Channel, ledger: int, entry: int, **options: Any) -> None:
    """Add one entry."""
    lac = options.pop("lac", None)
    channel.add_stored_async(stored(ledger, entry, lac), DIGEST.master_key, **options).result()


def test_entries_and_lacs(channel: ChannelV3, ledger: int) -> None:
    """Under each digest entries come back byte for byte, with the LAC of the last one added."""
    for number, kind in enumerate(DigestType, ledger):
        digest = Digest.of(kind, b"pw")
        for entry in range(3):
            channel.add_stored_async(stored(number, entry, digest=digest), digest.master_key).result()
        answer = channel.read_with_lac(number, 0)
        assert (answer.entry, answer.stored, answer.lac) == (0, stored(number, 0, digest=digest), 1)
        assert channel.read_last(number) == stored(number, 2, digest=digest) == channel.read(number, 2)


def test_stream(channel: ChannelV3, ledger: int) -> None:
    """B1: a stream of 10,000 entries of all sizes is confirmed whole, and what comes back verifies."""
    chance = np.random.default_rng(7)
    offsets = np.concatenate([[0], np.cumsum(chance.integers(0, 300, ENTRIES))])
    data = chance.bytes(int(offsets[-1]))
    stream = channel.add_batch(ledger, 0, data, offsets, digest=DIGEST, outstanding=1000)
    assert (stream.confirmed, stream.length) == (ENTRIES, len(data))
    replies = [channel.read_async(ledger, entry) for entry in range(0, ENTRIES, 7)]
    for entry, reply in zip(range(0, ENTRIES, 7), replies, strict=True):
        assert DIGEST.open(reply.result(), ledger, entry).payload == data[offsets[entry] : offsets[entry + 1]]


def test_the_longest_wait_ends(channel: ChannelV3, ledger: int) -> None:
    """A wait ends with the add that raises the LAC, with an explicit LAC, with a fence, or when its time is over.

    Upstream serves waits and adds on threads of their own. An add that overtakes the wait before it has raised the
    LAC
    when the wait is served, and the answer then carries no time.
    """
    add(channel, ledger, 0)
    assert channel.wait_for_lac(ledger, -1, 10).entry is None
    last, risen = 0, None
    while risen is None:
        last += 1
        assert last < 100, "no wait was served before the add behind it"
        waiting = channel.wait_for_lac_async(ledger, last - 2, LONG_MS)
        add(channel, ledger, last)
        answer = waiting.result()
        assert (answer.entry, answer.stored, answer.lac) == (last - 1, stored(ledger, last - 1), last - 1)
        risen = answer.lac_risen_ms

    waiting = channel.wait_for_lac_async(ledger, last - 1, LONG_MS)
    channel.write_lac(ledger, last, digest=DIGEST)
    answer = waiting.result()
    assert (answer.entry, answer.stored, answer.lac) == (last, stored(ledger, last), last)

    waiting = channel.wait_for_lac_async(ledger, last, LONG_MS)
    assert channel.fence(ledger, DIGEST.master_key) == stored(ledger, last)
    assert waiting.result()[:3] == (None, None, last)


def test_many_waits_at_once(channel: ChannelV3, ledger: int) -> None:
    """200 ledgers are waited for on one connection while it adds to all of them.

    The short wait before that is for upstream, which knows the LAC only of ledgers that somebody has waited for
    already.
    """
    numbers = range(ledger, ledger + 200)
    for number in numbers:
        add(channel, number, 0)
        channel.wait_for_lac(number, -1, 1)
    waiting = [channel.wait_for_lac_async(number, -1, LONG_MS) for number in numbers]
    adds = [channel.add_stored_async(stored(number, 1), DIGEST.master_key) for number in reversed(numbers)]
    for reply in adds:
        reply.result()
    assert {reply.result()[2] for reply in waiting} == {0}


def test_explicit_lacs(channel: ChannelV3, ledger: int) -> None:
    """An explicit LAC is stored as it came, is returned beside the last entry, and counts as LAC."""
    add(channel, ledger, 0)
    add(channel, ledger, 1)
    assert channel.read_lac(ledger) == (None, stored(ledger, 1))
    channel.write_lac(ledger, 1, digest=DIGEST)
    assert channel.read_lac(ledger) == (DIGEST.seal_lac(ledger, 1), stored(ledger, 1))
    assert channel.read_with_lac(ledger, 0).lac == 1
    with pytest.raises(UnauthorizedAccess):
        channel.write_lac(ledger, 1, digest=Digest.of(DigestType.CRC32C, b"other"))
    with pytest.raises(NoSuchEntry):
        channel.read_lac(ledger + 1)


def test_deferred_sync_and_force(start_bookies: Start, ledger: int) -> None:
    """Adds that are acknowledged unsynced are there after a kill once the ledger was forced."""
    bookie = start_bookies(1, zkTimeout="4000")[0]
    with ChannelV3.connect("127.0.0.1", bookie.port) as channel:
        with channel.add_stream(ledger, 0, digest=DIGEST, deferred_sync=True) as stream:
            stream.append(b"abcd" * 250, np.arange(1001))
        channel.force(ledger)
        bookie.kill()
    bookie.start()
    with ChannelV3.connect("127.0.0.1", bookie.port) as channel:
        for entry in (0, 500, 999):
            assert DIGEST.open(channel.read(ledger, entry), ledger, entry).payload == b"abcd"[entry % 4 : entry % 4 + 1]


def test_fencing_race(channel: ChannelV3, ledger: int) -> None:
    """When one client adds while another fences, everything acknowledged is before the fence, and nothing after it."""
    writer = channel.add_stream(ledger, 0, digest=DIGEST, outstanding=200)

    def write() -> int:
        try:
            while True:
                writer.append(bytes(100), np.arange(101))
        except LedgerFenced:
            return writer.confirmed

    with ThreadPoolExecutor(1) as threads:
        writing = threads.submit(write)
        channel.connection.wait(lambda: writer.confirmed >= 1000, lambda: None, timeout_s=60)
        last = channel.fence(ledger, DIGEST.master_key)
        confirmed = writing.result()
    assert last is not None
    assert DIGEST.open(last, ledger).entry >= confirmed - 1
    assert len(channel.read(ledger, confirmed - 1)) > 0
    add(channel, ledger, confirmed, flags=Flags.RECOVERY_ADD | Flags.HIGH_PRIORITY)


def test_what_a_bookie_tells(channel: ChannelV3) -> None:
    """The bookie reports the size of its disks, and no more free space than that."""
    info = channel.bookie_info()
    assert 0 < info.free <= info.total


def test_list_of_entries(standing: Standing, shared_cluster_uri: str, ledger: int) -> None:
    """The list contains what is stored, without gaps; an unknown ledger has none. Upstream's storage never answers."""
    with ChannelV3.connect("127.0.0.1", standing("ours", shared_cluster_uri).port) as channel:
        for entry in (0, 1, 2, 5, 6, 8):
            add(channel, ledger, entry)
        available = channel.list_entries(ledger)
        assert [entry for entry in range(-1, 10) if entry in available] == [0, 1, 2, 5, 6, 8]
        with pytest.raises(NoSuchLedger):
            channel.list_entries(ledger + 1)


def test_both_protocols_side_by_side(port: int, ledger: int) -> None:
    """What one protocol writes the other reads, and a fence of one stops the other."""
    with ChannelV3.connect("127.0.0.1", port) as new, Channel.connect("127.0.0.1", port) as old:
        add(new, ledger, 0)
        add(old, ledger, 1)
        assert (old.read(ledger, 0), new.read(ledger, 1)) == (stored(ledger, 0), stored(ledger, 1))
        assert old.fence(ledger, DIGEST.master_key) == stored(ledger, 1)
        with pytest.raises(LedgerFenced):
            add(new, ledger, 2)


def test_java_and_extensions(standing: Standing, shared_cluster_uri: str, ledger: int) -> None:
    """A Java bookie answers EBADREQ to a batch read, and drops the connection that carries a write close."""
    with ChannelV3.connect("127.0.0.1", standing("java", shared_cluster_uri).port) as channel:
        channel.extensions = Extensions(["batchRead", "writeClose"])
        with pytest.raises(IllegalOperation, match="answered with code 404"):
            channel.batch_read(ledger, 0)
        with pytest.raises(IllegalOperation, match="does not advertise"):
            channel.batch_read(ledger, 0)
        with pytest.raises(BookieUnavailable):
            channel.write_close(ledger, DIGEST.master_key)
