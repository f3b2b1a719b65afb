"""How long a reader that follows a ledger bears that its bookies fail, on a loop without a clock."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from bookie.client.config import ClientConfig
from bookie.client.entries.digest import Digest, DigestType
from bookie.client.entries.verified import EntryBatch
from bookie.client.ledgers.follow import FAILURES_S, Follower
from bookie.client.ledgers.lac_reads import LastConfirmed
from bookie.client.ledgers.ranges import RangeReader
from bookie.client.ledgers.view import LedgerView
from bookie.errors import BookieUnavailable, BookKeeperError, NoSuchLedgerMetadata, UnauthorizedAccess
from bookie.metadata.driver import Versioned
from tests.client.ledgers.shelf import metadata
from tests.sim.loop import VirtualLoop

DIGEST = Digest.of(DigestType.CRC32C, b"")
CONFIG = ClientConfig()


class Away:
    """Reads of a closed ledger with ten entries, which fail at some times."""

    def __init__(self, loop: VirtualLoop, until_s: float, error: type[BookKeeperError] = BookieUnavailable) -> None:
        self.view = LedgerView(7, Versioned(metadata({0: ["bookie:1"]}, 9), 1, 0))
        self._loop = loop
        self._until_s = loop.time() + until_s
        self._error = error
        self.failed = 0

    def batches(self, first: int, last: int, *, max_count: int, max_size: int) -> RangeReader:
        """Read a range."""
        return RangeReader(self._read, first, last, max_count, max_size, CONFIG)

    async def _read(self, first: int, last: int | None, max_count: int, max_size: int) -> EntryBatch:
        del last, max_size
        await asyncio.sleep(0.01)
        if first >= 4 and self._loop.time() < self._until_s:
            self.failed += 1
            raise self._error("it restarts")
        stored = [DIGEST.seal(7, k, b"x", lac=k - 1, length=k + 1) for k in range(first, min(first + max_count, 10))]
        return EntryBatch.of_entries(7, first, stored[: 4 - first] if first < 4 else stored, DIGEST)

    def read_last_add_confirmed_and_entry(self, entry: int, timeout_ms: int) -> Coroutine[Any, Any, LastConfirmed]:
        """Not called, since the ledger is closed."""
        raise AssertionError(entry, timeout_ms)


def followed(reads: Away) -> list[int]:
    """Return the ids of all entries."""

    async def follow() -> list[int]:
        follower = Follower(reads, reads.view, 0, 0, 1 << 20, CONFIG)
        return [entry.id async for batch in follower for entry in batch]

    return reads._loop.run(follow())


def test_a_bookie_that_restarts() -> None:
    """Reads of acknowledged entries that fail for less than half a minute are repeated, at a moderate rate."""
    loop = VirtualLoop()
    reads = Away(loop, FAILURES_S - 1)
    assert followed(reads) == list(range(10))
    assert 10 < reads.failed < 100


def test_a_bookie_that_stays_away() -> None:
    """The error comes after half a minute."""
    loop = VirtualLoop()
    began = loop.time()
    with pytest.raises(BookieUnavailable, match="it restarts"):
        followed(Away(loop, 1000))
    assert FAILURES_S < loop.time() - began < FAILURES_S + 5


def test_time_between_calls_does_not_count() -> None:
    """A program that gives up a call while reads fail, and asks again much later, has the whole half minute again."""
    loop = VirtualLoop()
    reads = Away(loop, 10 * FAILURES_S + FAILURES_S / 2)

    async def follow() -> None:
        follower = Follower(reads, reads.view, 4, 0, 1 << 20, CONFIG)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(follower.ready(), FAILURES_S / 10)
        assert reads.failed
        await asyncio.sleep(10 * FAILURES_S)
        assert [entry.id for batch in await follower.ready() for entry in batch] == [4, 5, 6, 7, 8, 9]

    loop.run(follow())


@pytest.mark.parametrize("error", [UnauthorizedAccess, NoSuchLedgerMetadata])
def test_errors_that_do_not_pass(error: type[BookKeeperError]) -> None:
    """A wrong password and a deleted ledger are raised at once."""
    loop = VirtualLoop()
    reads = Away(loop, 1000, error)
    with pytest.raises(error):
        followed(reads)
    assert reads.failed <= 2
