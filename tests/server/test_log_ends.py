"""What closes the entry log of a ledger besides its announced end (BP-32): a refused add, a fence, or time."""

import time
from pathlib import Path

import pytest

from bookie.client import Channel, ChannelV3, Digest, Extensions
from bookie.client.wire.extensions import WRITE_CLOSE
from bookie.errors import BookieReadOnly, BookKeeperError, LedgerFenced, TooManyRequests, UnauthorizedAccess
from tests.fixtures.whole_bookie import Running, whole_bookie

DIGEST = Digest.of(password=b"one")
WAIT_S = 60.0
OTHER = Digest.of(password=b"other")


def ended(running: Running) -> float:
    """Return how many ledgers ended at the bookie."""
    families = {family.name: family for family in running.bookie.metrics()}
    return sum(sample.value for sample in families["pybookie_ledgers_write_closed_total"].samples)


def add(channel: Channel, ledger: int, entry: int, digest: Digest = DIGEST) -> None:
    """Add an entry and wait for its response."""
    channel.add(ledger, entry, b"x", digest=digest, lac=-1, length=0)


def test_adds_that_are_refused(tmp_path: Path) -> None:
    """An add refused by a fence or a read-only bookie ends its ledger here; one with a wrong key ends nothing."""
    bookie = whole_bookie(tmp_path, entryLogPerLedgerEnabled="true")
    with bookie as running, Channel.connect(*running.address) as channel:
        for ledger in range(3):
            add(channel, ledger, 0)
        with pytest.raises(UnauthorizedAccess):
            add(channel, 0, 1, OTHER)
        assert ended(running) == 0
        channel.fence(0, DIGEST.master_key)
        assert ended(running) == 1
        running.bookie.checkpoint()  # which closes the log, so that a later refusal counts again
        with pytest.raises(LedgerFenced):
            add(channel, 0, 1)
        assert ended(running) == 2
        running.bookie.set_read_only(read_only=True)
        with pytest.raises(BookieReadOnly):
            add(channel, 1, 1)
        assert ended(running) == 3


def test_adds_above_a_limit(tmp_path: Path) -> None:
    """Adds refused because too many wait for the journal end their ledger, too; the writer leaves this bookie."""
    with whole_bookie(tmp_path, entryLogPerLedgerEnabled="true", maxPendingAddRequestsPerThread="1") as running:
        with Channel.connect(*running.address) as channel:
            waiting = [channel.add_async(7, entry, b"x", digest=DIGEST, lac=-1, length=0) for entry in range(1000)]
            answers: list[BookKeeperError | None] = []
            for reply in waiting:
                try:
                    reply.result()
                except BookKeeperError as error:
                    answers.append(error)
                else:
                    answers.append(None)
        assert answers[0] is None
        assert any(isinstance(answer, TooManyRequests) for answer in answers)
        assert ended(running) == 1


def active(running: Running) -> float:
    """Return how many entry logs of ledgers the bookie writes to."""
    families = {family.name: family for family in running.bookie.metrics()}
    return sum(sample.value for sample in families["bookie_entrylogger_NUM_OF_WRITE_ACTIVE_LEDGERS"].samples)


def test_a_log_without_an_announcement_ends_in_time(tmp_path: Path) -> None:
    """The log of a ledger that nobody writes to any more is closed, although nobody said that the ledger ended."""
    keys = {"entrylogMapAccessExpiryTimeInSeconds": "1", "flushInterval": "50"}
    bookie = whole_bookie(tmp_path, entryLogPerLedgerEnabled="true", **keys)
    with bookie as running, Channel.connect(*running.address) as channel:
        add(channel, 0, 0)
        running.bookie.checkpoint()
        deadline = time.monotonic() + WAIT_S
        while active(running):
            assert time.monotonic() < deadline
        assert ended(running) == 0
        assert len(channel.read(0, 0)) > 0


def test_the_largest_values(tmp_path: Path) -> None:
    """With as many logs as can be configured, kept as long as can be, an announced one is closed at once, and what it
    holds is read with the farthest readahead.
    """
    keys = {
        "entryLogPerLedgerEnabled": "true",
        "maximumNumberOfActiveEntryLogs": "1000000",
        "entrylogMapAccessExpiryTimeInSeconds": "86400",
        "dbStorage_readAheadCacheBatchSize": "1000000",
        "dbStorage_readAheadCacheBatchBytesSize": str(1 << 30),
    }
    with whole_bookie(tmp_path, **keys) as running, ChannelV3.connect(*running.address) as channel:
        channel.extensions = Extensions((WRITE_CLOSE,))
        for ledger in range(20):
            for entry in range(50):
                channel.add(ledger, entry, bytes(1000), digest=DIGEST, lac=entry - 1, length=1000 * entry)
        running.bookie.checkpoint()
        assert active(running) == 20
        for ledger in range(19):
            channel.write_close(ledger, DIGEST.master_key)
        running.bookie.checkpoint()
        assert active(running) == 1
        for entry in range(50):
            for ledger in range(20):
                assert channel.read(ledger, entry).endswith(bytes(1000))
